"""How long one call may take, without the time for the answers of the person."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import anyio
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, ErrorData

from tool_chaining import DEFAULT_CALL_TIMEOUT


@dataclass(frozen=True)
class Timeouts:
    """How long the client waits for a server. Reported progress does not extend it."""

    connect: float = 60.0
    """Seconds until it has started and answered."""
    call: float = DEFAULT_CALL_TIMEOUT
    """Seconds for one call, without those in which the person is asked."""


DEFAULT: Final = Timeouts()
"""The timeouts if the user chose none."""


@dataclass
class _Call:
    """One running call."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    open: int = 0
    """Questions that the person has not answered yet."""
    left: float = inf
    """Seconds that the call has left after the answers."""


class CallTimer:
    """The time of the calls on one connection, of which one is made at a time."""

    def __init__(self) -> None:
        self._call = _Call()

    @contextmanager
    def of_a_call(self, seconds: float | None) -> Iterator[None]:
        """Limit the call in the block to so many seconds. Raises TimeoutError."""
        self._call = _Call()
        with self._call.scope as scope:
            if seconds is not None:
                scope.deadline = anyio.current_time() + seconds
            yield
        if scope.cancelled_caught:
            raise TimeoutError

    def on(self, answer: ElicitationFnT) -> ElicitationFnT:
        """Return `answer` as a callback that stops the clock while the person answers."""

        async def timed(
            context: ClientRequestContext, params: ElicitRequestParams
        ) -> ElicitResult | ErrorData:
            call = self._call
            if not call.open:
                call.left = call.scope.deadline - anyio.current_time()
                call.scope.deadline = inf
            call.open += 1
            try:
                return await answer(context, params)
            finally:
                call.open -= 1
                if not call.open:
                    call.scope.deadline = anyio.current_time() + call.left

        return timed


class TimeoutClient(Client):
    """A client of the SDK whose timeout does not count the time of the person's answers."""

    timer: CallTimer
    progressed: ProgressFnT | None = None
    """Called with the progress of a call. Without it, the client does not ask for progress."""

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressFnT | None = None,
        **options: Any,
    ) -> CallToolResult:
        """Call a tool, as `mcp.Client` does. `read_timeout_seconds` counts only the server's time.

        Raises TimeoutError.
        """
        progressed = progress_callback or self.progressed
        with self.timer.of_a_call(read_timeout_seconds):
            result = await super().call_tool(name, arguments, None, progressed, **options)
        return result
