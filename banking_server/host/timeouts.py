"""How long one call may take, without the time for the answers of the person."""

from dataclasses import dataclass
from typing import Any, Final, Self

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, ErrorData

from tool_chaining.client import DEFAULT_CALL_TIMEOUT
from tool_chaining_proxy.hosting.call_timer import CallTimer
from tool_chaining_proxy.hosting.refused import telling_refusals


@dataclass(frozen=True)
class Timeouts:
    """How long the client waits for a server. Reported progress does not extend it."""

    connect: float = 60.0
    """Seconds until it has started and answered."""
    call: float = DEFAULT_CALL_TIMEOUT
    """Seconds for one call, without those in which the person is asked."""


DEFAULT: Final = Timeouts()
"""The timeouts if the user chose none."""


def answered_in_own_time(timer: CallTimer, answer: ElicitationFnT) -> ElicitationFnT:
    """Return `answer` as a callback that stops the clock while the person answers."""

    async def timed(
        context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        with timer.paused():
            return await answer(context, params)

    return timed


class TimeoutClient(Client):
    """A client of the SDK whose timeout does not count the time of the person's answers.

    It loses no result: the SDK drops one whose tool has another output schema in the list, or where
    the list cannot be read.
    """

    timer: CallTimer
    progressed: ProgressFnT | None = None
    """Called with the progress of a call. Without it, the client does not ask for progress."""

    async def __aenter__(self) -> Self:
        """Connect, as `mcp.Client` does."""
        await super().__aenter__()
        self.session.validate_tool_result = _accepted  # type: ignore[method-assign]
        return self

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressFnT | None = None,
        **options: Any,
    ) -> CallToolResult:
        """Call a tool, as `mcp.Client` does. `read_timeout_seconds` counts only the server's time.

        Raises TimeoutError, and CallRefused if the server refused the call over HTTP.
        """
        progressed = progress_callback or self.progressed
        with telling_refusals(), self.timer.limited(read_timeout_seconds):
            result = await super().call_tool(name, arguments, None, progressed, **options)
        return result


async def _accepted(name: str, result: CallToolResult) -> None:
    """Accept a result as it is, in place of the SDK's check."""
