"""Results as the server sent them, if they violate MCP.

`mcp.Client` reads each result into a model, and raises an exception if one member does not fit. But
by then the call has been made, and the other members are worth reading.
"""

from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, Final

from mcp import ClientSession
from pydantic import ValidationError

from tool_chaining.content import Json

_ARRIVED: Final[ContextVar[list[Json] | None]] = ContextVar("_ARRIVED", default=None)


def keep_results(session: ClientSession) -> None:
    """Make a session keep each result for `or_as_sent`, and stop checking structured content.

    The SDK checks it against the output schema in the server's list. If the list cannot be read, or
    the server breaks its own schema, the SDK drops the result. Its dispatcher is not public.
    """
    send = session._dispatcher.send_raw_request

    async def sent(*request: Any) -> Json:
        result = await send(*request)
        if (arrived := _ARRIVED.get()) is not None:
            arrived.append(result)
        return result

    async def accepted(*_: Any) -> None:
        """Accept the structured content of a result."""

    session._dispatcher.send_raw_request = sent  # type: ignore[method-assign, assignment]
    session.validate_tool_result = accepted  # type: ignore[method-assign, assignment]


async def or_as_sent(request: Awaitable[Any], *, always: bool = False) -> Any:
    """Return the result of a client's request, or its JSON if it fits no model.

    With `always`, it is returned as JSON in any case: models turn a hint `"true"` into a boolean.
    """
    outer, arrived = _ARRIVED.get(), list[Json]()
    token = _ARRIVED.set(arrived)
    try:
        result = await request
        # Ignore a list that the SDK reads for a call.
        return arrived[-1] if always and arrived and outer is None else result
    except ValidationError:
        if outer is not None or not arrived:
            raise
        return arrived[-1]
    finally:
        _ARRIVED.reset(token)
