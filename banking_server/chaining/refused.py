"""Which calls a server refused before it acted on them: they had no effect, and were not made.

Two refusals say that, and no others (TC-C-39): one for want of authorization, with HTTP 401 or 403,
and one for the protocol version or the headers of the request, with a JSON-RPC code of its own.
The MCP SDK drops the HTTP status, so `ResilientHttpClient` notes it here for the call that it
belongs to. No other error proves anything: the SDK's servers answer -32602 where a tool's own code
fails to validate something, which can be after it has paid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION

_statuses: ContextVar[list[int | None] | None] = ContextVar("_statuses", default=None)


@contextmanager
def capture_http_status() -> Iterator[list[int | None]]:
    """Note with which HTTP statuses the requests of the call inside are answered."""
    statuses: list[int | None] = []
    token = _statuses.set(statuses)
    try:
        yield statuses
    finally:
        _statuses.reset(token)


def note_status(status: int | None) -> None:
    """Note the HTTP status that answers a `tools/call`; None while there is no answer."""
    if (statuses := _statuses.get()) is not None:
        statuses.append(status)


def was_refused(error: Exception, statuses: list[int | None]) -> bool:
    """Return whether a call that raised `error` was refused before the server acted."""
    code = getattr(getattr(error, "error", None), "code", None)
    by_http = bool(statuses) and statuses[-1] in (401, 403)
    return by_http or code in (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)
