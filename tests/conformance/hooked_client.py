"""This project's client under test once more, on the hook of `specs/upstream/python-sdk`.

The host calls `Client.call_tool`, and the client's extension follows the chain. It needs an SDK
with the patch, and answers each line of its standard input with a line.
"""

import sys
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from mcp import MCPError
from project_client import run_many

from tool_chaining import Follower

sys.path.append(str(Path(__file__).parents[2] / "specs" / "upstream" / "python-sdk"))
from chaining_client import ToolChaining

HOST: ContextVar[Follower] = ContextVar("HOST")


class OfHost(Follower):
    """What the host wants of one first call, which it makes by the client alone."""

    async def call_tool(self, name: str, arguments: Any = None, **_: Any) -> Any:
        HOST.set(self)
        with suppress(MCPError):  # `on_end` has the chain.
            await self.client.call_tool(name, arguments, read_timeout_seconds=self.call_timeout)


class Asking(ToolChaining):
    """The extension of the example, with the user, the record and the listeners of the host."""

    def follower(self, caller: Any) -> Follower:
        host = HOST.get()
        return Follower(
            caller,
            consent=host.consent,
            conversation=host.conversation,
            call_timeout=host.call_timeout,
            on_step=host.on_step,
            on_end=host.on_end,
        )


if __name__ == "__main__":
    run_many(OfHost, Asking())
