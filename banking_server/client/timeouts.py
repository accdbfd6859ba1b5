"""A client whose time limits leave out the person's answers, and that loses no result."""

from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, Final, Self

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData
from pydantic import ValidationError

from tool_chaining.content import Json
from tool_chaining.hosting.call_timer import CallTimer
from tool_chaining.hosting.refused import telling_refusals

_ARRIVED: Final[ContextVar[list[Json]]] = ContextVar("_ARRIVED")
"""The results of the running request, as they arrived."""


class TimeoutClient(Client):
    """A client of the SDK whose timeout excludes the time for the person's answers.

    It returns a result that violates MCP as JSON: the call was made, and most of it can be read.
    """

    def __post_init__(self) -> None:
        """Let the clock stop while the person answers a question."""
        self._timer = CallTimer()
        if (answer := self.elicitation_callback) is not None:

            async def timed(
                context: ClientRequestContext, params: ElicitRequestParams
            ) -> ElicitResult | ErrorData:
                with self._timer.paused():
                    return await answer(context, params)

            self.elicitation_callback = timed
        super().__post_init__()

    async def __aenter__(self) -> Self:
        """Connect, as `mcp.Client` does."""
        await super().__aenter__()
        send = self.session._dispatcher.send_raw_request  # It is not public.

        async def sent(*request: Any) -> Json:
            result = await send(*request)
            _ARRIVED.get([]).append(result)
            return result

        async def accepted(*_: Any) -> None:
            """Accept any structured content. The SDK would drop one that breaks its schema."""

        self.session._dispatcher.send_raw_request = sent  # type: ignore[method-assign, assignment]
        self.session.validate_tool_result = accepted  # type: ignore[method-assign, assignment]
        return self

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
        with telling_refusals(), self._timer.limited(read_timeout_seconds):
            return await _as_sent(
                super().call_tool(name, arguments, None, progress_callback, **options)
            )

    async def list_tools(self, **options: Any) -> Any:
        """Return a page of the tools as JSON: models turn a hint `"true"` into a boolean."""
        return await _as_sent(super().list_tools(**options), always=True)


async def _as_sent(request: Awaitable[Any], *, always: bool = False) -> Any:
    """Return the result of a request, or the JSON that arrived if it fits no model."""
    arrived = list[Json]()
    _ARRIVED.set(arrived)
    try:
        result = await request
    except ValidationError:
        if not arrived:
            raise
        return arrived[-1]
    return arrived[-1] if always and arrived else result
