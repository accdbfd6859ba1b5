"""The secret is changed while customers are in the middle of something."""

from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.settings import Settings, load_settings
from banking_server.server.tokens import Tokens, load_keys

from ..kit.bank import code_of, fill, structured
from ..kit.servers import Chooser, http_client
from ..kit.words import CONFIRM, PREPARE, TO_SAVINGS

OLD, NEW = "o" * 32, "n" * 32


class OneAfterAnother(httpx2.AsyncBaseTransport):
    """Sends each round of a call to the next of several servers, and stays at the last."""

    def __init__(self, *apps: Any) -> None:
        self._left = [httpx2.ASGITransport(app) for app in apps]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        is_call = request.headers.get("Mcp-Method") == "tools/call"
        to = self._left.pop(0) if is_call and len(self._left) > 1 else self._left[0]
        return await to.handle_async_request(request)


@pytest.mark.anyio
async def test_what_began_under_the_old_secret_goes_on_under_both(database: Path) -> None:
    def chosen(secret: str) -> Settings:
        return load_settings(database=database, secret=secret, max_sessions=0)

    def token(settings: Settings) -> str:
        return Tokens.of(settings, load_keys(settings)).mint(
            "CUST001", ["bank:read", "bank:transfer"], now=utc_now(), lifetime=timedelta(minutes=5)
        )

    url = chosen(OLD).resource
    await fill(database, utc_now())
    async with AsyncExitStack() as running:
        apps = [http_app(chosen(secret)) for secret in (OLD, f"{NEW}\n{OLD}", NEW)]
        for app in apps:
            await running.enter_async_context(app.router.lifespan_context(app))
        before, during, after = apps

        def client(secret: str, *through: Any, answer: Any = None, mode: str = "2026-07-28") -> Any:
            transport = OneAfterAnother(*through)
            return http_client(url, token(chosen(secret)), mode, answer, transport)

        # A question is asked before, and answered during the change; and then after it.
        for secret, through in ((OLD, (before, during)), (NEW, (during, after))):
            asked = Chooser("callback")
            async with client(secret, *through, answer=asked) as customer:
                result = await customer.call_tool("request_agent_handoff", {"reason": secret})
                assert structured(result)["choice"] == "callback"
            assert len(asked.asked) == 1

        async with client(OLD, before) as customer:
            prepared = [
                await customer.call_tool(PREPARE, {**TO_SAVINGS, "amount": amount})
                for amount in (5, 6)
            ]
        statuses = []
        for secret, app, each in ((OLD, during, prepared[0]), (NEW, after, prepared[1])):
            code = {
                "transferId": structured(each)["transferId"],
                "action": "confirm",
                "confirmationCode": code_of(each),
            }
            async with client(secret, app) as customer:
                result = await customer.call_tool(CONFIRM, code)
            statuses.append("refused" if result.is_error else structured(result)["status"])
        assert statuses == ["posted", "refused"]
