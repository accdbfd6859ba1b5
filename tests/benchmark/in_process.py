"""A fixed number of calls in one process, whose instructions can be counted.

`python -m tests.benchmark.in_process CALLS bare|ROW` calls a server's ASGI application directly,
on sixteen connections at once: the HTTP server before it is the same for both. `... CALLS two|chain
URL TOKEN` is a client of a server that runs elsewhere.
"""

import asyncio
import os
import sys
from collections import defaultdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client
from starlette.applications import Starlette

from banking_server.server.http import http_app_from_environment
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.settings import PREFIX, load_settings
from banking_server.server.tokens import Tokens
from tool_chaining import Follower, TrustHints

from ..kit.servers import http_client
from . import bare
from .load import CUSTOMER, MANY, MONEY, Caller, Connections, Step, converse, of_the_bank

WARM_UP = 4 * MANY
"""Calls of each kind before those that count."""

FIRST, SECOND = "prepare_money_transfer", "request_agent_handoff"


async def call_app(app: Starlette, request: bytes) -> str:
    """Hand one whole HTTP request to an application, and return the body of its response."""
    head, body = request.split(b"\r\n\r\n", 1)
    lines = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(name.lower(), value) for name, value in lines],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    sent: list[dict[str, Any]] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return left.pop() if left else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    answer = b"".join(message.get("body", b"") for message in sent).decode()
    assert sent[0]["status"] == 200, answer
    return answer


async def call_all(app: Starlette, connections: Connections, calls: int) -> None:
    """Make so many calls in all, one under way on each connection."""
    share = calls // len(connections)
    await asyncio.gather(
        *(
            converse(steps, partial(call_app, app), lambda made: made >= share, defaultdict(list))
            for steps in connections
        )
    )


async def serve(calls: int, row: str) -> None:
    with TemporaryDirectory(prefix="benchmark-") as folder:
        if row == "bare":
            step = Step(row, Caller(8000).request(bare.TOOL), (bare.SAYS,))
            mcp = bare.server()
            app = mcp.streamable_http_app(stateless_http=True, json_response=True)
            warm: dict[str, Connections] = {row: [[step]] * MANY}
        else:
            os.environ[f"{PREFIX}DATABASE"] = str(Path(folder) / "bank.db")
            app, settings = http_app_from_environment(), load_settings()
            tokens = Tokens.of(settings, load_keys(settings))
            scopes, day = ["bank:read", "bank:transfer"], timedelta(days=1)
            token = tokens.mint(CUSTOMER, scopes, now=utc_now(), lifetime=day)
            warm = of_the_bank(Caller(8000, token))
        async with app.router.lifespan_context(app):
            for connections in warm.values():
                await call_all(app, connections, WARM_UP)
            await call_all(app, warm[row], calls)


async def two_calls(client: Client) -> None:
    one = await client.call_tool(FIRST, MONEY)
    two = await client.call_tool(SECOND, (one.meta or {})["nextTool"]["arguments"])
    assert not two.is_error, two


async def follow(follower: Follower) -> None:
    done = await follower.call_tool(FIRST, MONEY)
    assert [step.tool for step in done.steps] == [FIRST, SECOND], done


async def ask(calls: int, row: str, url: str, token: str) -> None:
    async with http_client(url, token, "auto") as client:
        follower = Follower(client, consent=TrustHints())
        ways = {"two": partial(two_calls, client), "chain": partial(follow, follower)}
        for way in (*ways.values(), *[ways[row]] * calls):
            await way()


if __name__ == "__main__":
    count, what, *server = sys.argv[1:]
    asyncio.run(ask(int(count), what, *server) if server else serve(int(count), what))
