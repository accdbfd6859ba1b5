"""The secret is changed while customers are in the middle of something."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..kit.bank import code_of, structured
from ..kit.servers import Chooser, http_client
from ..kit.words import CONFIRM, PREPARE, TO_SAVINGS
from .in_memory import URL, Bank, bank_in_memory

pytestmark = pytest.mark.quick

OLD, NEW = "o" * 32, "n" * 32


class OneAfterAnother(httpx2.AsyncBaseTransport):
    """Sends each round of a call to the next of several servers, and stays at the last."""

    def __init__(self, *banks: Bank) -> None:
        self._left = [httpx2.ASGITransport(bank.app) for bank in banks]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        is_call = request.headers.get("Mcp-Method") == "tools/call"
        to = self._left.pop(0) if is_call and len(self._left) > 1 else self._left[0]
        return await to.handle_async_request(request)


@pytest.mark.anyio
async def test_what_began_under_the_old_secret_goes_on_under_both(full: Path) -> None:
    async with AsyncExitStack() as running:
        before, during, after = [
            await running.enter_async_context(bank_in_memory(full, secret=secret, max_sessions=0))
            for secret in (OLD, f"{NEW}\n{OLD}", NEW)
        ]

        def client(by: Bank, *through: Bank, answer: Any = None) -> Any:
            transport = OneAfterAnother(*through)
            return http_client(URL, by.token(), "2026-07-28", answer, transport)

        # A question is asked before, and answered during the change.
        asked = Chooser("callback")
        async with client(before, before, during, answer=asked) as customer:
            result = await customer.call_tool("request_agent_handoff", {"reason": "A question"})
        assert structured(result)["choice"] == "callback"
        assert len(asked.asked) == 1

        async with client(before, before) as customer:
            prepared = [
                await customer.call_tool(PREPARE, {**TO_SAVINGS, "amount": amount})
                for amount in (5, 6)
            ]
        statuses = []
        for to, each in ((during, prepared[0]), (after, prepared[1])):
            transfer = {"transferId": structured(each)["transferId"], "action": "confirm"}
            async with client(to, to) as customer:
                result = await customer.call_tool(
                    CONFIRM, {**transfer, "confirmationCode": code_of(each)}
                )
            statuses.append("refused" if result.is_error else structured(result)["status"])
        assert statuses == ["posted", "refused"]
