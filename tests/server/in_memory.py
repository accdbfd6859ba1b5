"""The server's HTTP application without a socket: its bank, its clock, and requests to it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from banking_server.server.http import http_app
from banking_server.server.open_bank import utc_now
from banking_server.server.settings import load_settings

from ..bank.support import sql
from ..kit.servers import MODERN, BankServer, request_of, tool_call

URL = "http://127.0.0.1:8000/mcp"
"""Where the bank is, unless its settings say otherwise."""

METADATA = "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LOOK = tool_call("list_accounts")

LEGACY = "2025-11-25"


class Seconds:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bank(BankServer):
    """The application, and a client of it."""

    app: Any
    http: httpx2.AsyncClient

    async def send(
        self,
        message: Any,
        token: str | None = "",
        method: str = "POST",
        *,
        revision: str = MODERN,
        **headers: str,
    ) -> httpx2.Response:
        """Send a message, or whatever bytes it is, as a client of a revision does.

        By default it is CUST001's, with all scopes; None sends no token.
        """
        token = self.token() if token == "" else token
        body, sent = request_of(message, token, revision=revision)
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, self.settings.resource, headers=sent, content=body)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Read or change what is stored behind the server's back."""
        return sql(self.settings.database, statement)

    @contextmanager
    def events(self) -> Iterator[list[tuple[Any, ...]]]:
        """Give the audit events that the block leaves, when it has ended."""
        left: list[tuple[Any, ...]] = []
        ((last,),) = self.sql("SELECT coalesce(max(event_id), 0) FROM audit_event")
        yield left
        left += self.sql(
            "SELECT customer_id, tool, outcome, chain_id, chain_level, chain_previous_tool "
            f"FROM audit_event WHERE event_id > {last} ORDER BY event_id"
        )


@asynccontextmanager
async def bank_in_memory(
    database: Path, clock: Any = utc_now, **options: Any
) -> AsyncIterator[Bank]:
    """Run the application until the end of the block."""
    settings = load_settings(database=database, **options)
    app = http_app(settings, clock)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
    ):
        yield Bank(settings, app, http)


class Talk:
    """One customer's requests of 2025-11-25, and their session once they have one."""

    def __init__(self, bank: Bank, customer: str = "CUST001", *scopes: str) -> None:
        self.bank = bank
        self.token = bank.token(customer, *scopes)
        self.session: str | None = None

    async def send(self, message: Any, method: str = "POST", **headers: str) -> httpx2.Response:
        if self.session is not None:
            headers["Mcp_Session_Id"] = self.session
        return await self.bank.send(message, self.token, method, revision=LEGACY, **headers)

    async def open(self) -> str:
        """Open a session as a client that can be asked something does."""
        said = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}}
        params = {**said, "clientInfo": {"name": "a client", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        opened = await self.send(hello)
        assert opened.status_code == 200, opened.text
        self.session = opened.headers["Mcp-Session-Id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.send(ready)).status_code == 202
        return self.session

    async def works(self) -> bool:
        """Whether the session is there."""
        looked = await self.send(LOOK)
        assert looked.status_code in (200, 404), looked.text
        return looked.status_code == 200
