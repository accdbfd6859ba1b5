"""Whether a server refused a call before it acted on it. Such a call had no effect.

Only two errors prove that (TC-C-39): missing authorization, with HTTP 401 or 403, and a wrong
protocol version or header, with its own JSON-RPC code. The MCP SDK drops the HTTP status, so
`ResilientHttpClient` stores it here for its call. No other error is proof: the SDK's servers answer
-32602 also if a tool's own code fails to validate a value, perhaps after it has paid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION

_statuses: ContextVar[list[int | None] | None] = ContextVar("_statuses", default=None)


@contextmanager
def capture_http_status() -> Iterator[list[int | None]]:
    """Return a list that collects the HTTP status of each request of the call inside."""
    statuses: list[int | None] = []
    token = _statuses.set(statuses)
    try:
        yield statuses
    finally:
        _statuses.reset(token)


def note_status(status: int | None) -> None:
    """Store that a request of the call is sent (None), and then the HTTP status of its response."""
    if (statuses := _statuses.get()) is not None:
        if status is not None:
            statuses.pop()
        statuses.append(status)


def was_refused(error: Exception, statuses: list[int | None]) -> bool:
    """Return whether each request of a call that raised `error` was refused before it acted.

    `statuses` has one HTTP status for each request; it is empty without HTTP.
    """
    code = getattr(getattr(error, "error", None), "code", None)
    earlier, last = statuses[:-1], statuses[-1:]
    # The SDK sends a request again after a 400 only if that was an error of these two codes.
    return all(status in (400, 401, 403) for status in earlier) and (
        code in (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION) or last in ([401], [403])
    )
