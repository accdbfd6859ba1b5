"""This project's client under test once more, on the hook of `specs/upstream/python-sdk`.

The host calls `Client.call_tool`, and the client's extension follows the chain. It needs an SDK
with the patch, and answers each line of its standard input with a line.
"""

import sys
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from project_client import example

from tool_chaining import ChainResult, Follower

sys.path.append(str(Path(__file__).parents[2] / "specs" / "upstream" / "python-sdk"))
from chaining_client import ToolChaining

HOST: ContextVar[tuple[Follower, list[ChainResult]]] = ContextVar("HOST")
"""The host's own follower, and the chains of its call when they have ended."""


class OfHost(Follower):
    """What the host wants of one first call, which it makes by the client alone."""

    async def call_tool(self, name: str, arguments: Any = None, **_: Any) -> Any:
        """Make a first call. Its chain is followed inside the client."""
        ended: list[ChainResult] = []
        HOST.set((self, ended))
        with suppress(Exception):  # `on_end` has the chain.
            await self.client.call_tool(name, arguments, read_timeout_seconds=self.call_timeout)
        return ended[-1]


class Asking(ToolChaining):
    """The extension of the example, with the user, the record and the listener of the host."""

    def follower(self, caller: Any) -> Follower:
        host, ended = HOST.get()

        def note(chain: ChainResult) -> Any:
            ended.append(chain)
            return host.on_end(chain) if host.on_end else None

        return Follower(
            caller,
            consent=host.consent,
            conversation=host.conversation,
            call_timeout=host.call_timeout,
            on_end=note,
            rules=host.rules,
        )

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        async def call(params: Any) -> Any:
            with example.telling_refusals():
                return await call_next(params)

        return await super().intercept_tool_call(params, ctx, call)


if __name__ == "__main__":
    example.Follower, example.CLIENT_EXTENSION = OfHost, Asking()
    example.main()
