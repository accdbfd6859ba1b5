"""Which calls a server refused over HTTP. The MCP SDK drops the status that says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tool_chaining import CallRefused
from tool_chaining.caller import was_refused
from tool_chaining.negotiation import NEGOTIATED_FROM

_statuses: ContextVar[list[int | None] | None] = ContextVar("_statuses", default=None)


@contextmanager
def telling_refusals() -> Iterator[None]:
    """Raise `CallRefused` for a call inside the block whose every request the server refused.

    `ResilientHttpClient` notes the HTTP statuses. HTTP 401 and 403 prove a refusal. So does an
    error of the protocol that says so, but not if an earlier request of the call was answered, or
    lost: then it is raised as RuntimeError.
    """
    statuses: list[int | None] = []
    token = _statuses.set(statuses)
    try:
        yield
    except Exception as error:
        earlier, last = statuses[:-1], statuses[-1:]
        # The SDK sends a request again after a 400 only if that was a refusal.
        all_refused = all(status in (400, 401, 403) for status in earlier)
        if all_refused and last in ([401], [403]):
            raise CallRefused(str(error)) from error
        if not all_refused and was_refused(error, NEGOTIATED_FROM):
            raise RuntimeError(str(error)) from error
        raise
    finally:
        _statuses.reset(token)


def note_status(status: int | None) -> None:
    """Store that a request of the call is sent (None), and then the HTTP status of its response."""
    if (statuses := _statuses.get()) is not None:
        if status is not None:
            statuses.pop()
        statuses.append(status)
