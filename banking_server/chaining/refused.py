"""Which calls a server refused before it acted on them: they had no effect, and were not made.

A JSON-RPC error says it by its code. What a server refuses for want of authorization, or because it
does not know the session any more, it says by the HTTP status alone, which the MCP SDK drops; so
`SteadyHttpClient` notes it here for the call that it belongs to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
)

_CODES: Final = (INVALID_PARAMS, METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)


@dataclass
class LastAnswer:
    """How HTTP answered the last request of one call."""

    refused: bool = False
    """Whether its status is that of a request that was not acted on."""


_last_answer: ContextVar[LastAnswer | None] = ContextVar("_last_answer", default=None)


@contextmanager
def noting_answers() -> Iterator[LastAnswer]:
    """Note how the requests of the call inside are answered."""
    answer = LastAnswer()
    token = _last_answer.set(answer)
    try:
        yield answer
    finally:
        _last_answer.reset(token)


def note_answer(status: int | None, *, in_session: bool) -> None:
    """Note the HTTP status that answers a `tools/call`; None while there is no answer."""
    if (answer := _last_answer.get()) is not None:
        answer.refused = status in (401, 403) or (status == 404 and in_session)


def was_refused(error: Exception, answer: LastAnswer) -> bool:
    """Return whether a call that raised `error` was refused before the server acted."""
    code = getattr(getattr(error, "error", None), "code", None)
    return answer.refused or code in _CODES
