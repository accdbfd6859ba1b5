"""Time limits for calls, without the time in which the person answers."""

from dataclasses import dataclass
from typing import Any, Final, Self

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

from banking_server.client.as_sent import keep_results, or_as_sent
from tool_chaining.client import DEFAULT_CALL_TIMEOUT
from tool_chaining_proxy.hosting.call_timer import CallTimer
from tool_chaining_proxy.hosting.refused import telling_refusals


@dataclass(frozen=True)
class Timeouts:
    """How long the client waits for a server. Reported progress does not extend it."""

    connect: float = 60.0
    """Seconds for it to start and answer."""
    call: float = DEFAULT_CALL_TIMEOUT
    """Seconds for one call, without the time for questions to the person."""


DEFAULT: Final = Timeouts()
"""The default timeouts."""


def answered_in_own_time(timer: CallTimer, answer: ElicitationFnT) -> ElicitationFnT:
    """Return `answer` as a callback that stops the clock while the person answers."""

    async def timed(
        context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        with timer.paused():
            return await answer(context, params)

    return timed


class TimeoutClient(Client):
    """A client of the SDK whose timeout excludes the time for the person's answers.

    A result or a page of tools that violates MCP is returned as JSON (see `as_sent`).
    """

    timer: CallTimer
    progressed: ProgressFnT | None = None
    """Called with the progress of a call. Without it, the client does not ask for progress."""

    async def __aenter__(self) -> Self:
        """Connect, as `mcp.Client` does."""
        await super().__aenter__()
        keep_results(self.session)
        return self

    async def list_tools(self, **options: Any) -> Any:
        """Return a page of the tools, as the JSON that was sent."""
        return await or_as_sent(super().list_tools(**options), always=True)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressFnT | None = None,
        **options: Any,
    ) -> Any:
        """Call a tool, as `mcp.Client` does. `read_timeout_seconds` counts only the server's time.

        Raises TimeoutError, and CallRefused if the server refused the call over HTTP.
        """
        progressed = progress_callback or self.progressed
        with telling_refusals(), self.timer.limited(read_timeout_seconds):
            return await or_as_sent(super().call_tool(name, arguments, None, progressed, **options))
