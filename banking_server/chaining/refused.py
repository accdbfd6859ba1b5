"""Which calls a server refused before it acted on them: they had no effect, and were not made.

Two refusals say that, and no others (TC-C-39): one for want of authorization, with HTTP 401 or 403,
and one for the protocol version or the headers of the request, with a JSON-RPC code of its own.
The MCP SDK drops the HTTP status, so `SteadyHttpClient` notes it here for the call that it belongs
to. No other error proves anything: the SDK's servers answer -32602 where a tool's own code fails to
validate something, which can be after it has paid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION

_CODES: Final = (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)


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


def note_answer(status: int | None) -> None:
    """Note the HTTP status that answers a `tools/call`; None while there is no answer."""
    if (answer := _last_answer.get()) is not None:
        answer.refused = status in (401, 403)


def was_refused(error: Exception, answer: LastAnswer) -> bool:
    """Return whether a call that raised `error` was refused before the server acted."""
    code = getattr(getattr(error, "error", None), "code", None)
    return answer.refused or code in _CODES
