"""What the server says before a request gets as far as MCP: HTTP statuses with JSON-RPC errors."""

import math
from typing import Final

from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.bank.storage import BankBusy
from banking_server.messages.replies import RequestId, reply
from banking_server.server.tokens import CustomersUnknown, KeysUnavailable
from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE
from banking_server.tools.results import BUSY, incident_words, log_incident

RETRY_SECONDS: Final = 1
"""When to come back to a bank that is busy."""


def challenge(
    status: int, request_id: RequestId, metadata_url: str, words: str, error: str | None = None
) -> Response:
    """Return the refusal of a request for its token, which says where to get a better one.

    `error` is the code of RFC 6750; whoever sent no token is told none. `metadata_url` is where
    the resource describes itself (RFC 9728).
    """
    said = "" if error is None else f'error="{error}", error_description="{words}", '
    where = f'scope="{READ_SCOPE} {TRANSFER_SCOPE}", resource_metadata="{metadata_url}"'
    headers = {"WWW-Authenticate": f"Bearer {said}{where}"}
    return reply(status, request_id, INVALID_REQUEST, words, headers)


def too_fast(seconds: float, words: str) -> Response:
    """Return the response to a call that came `seconds` too early."""
    return reply(429, None, INTERNAL_ERROR, words, {"Retry-After": str(math.ceil(seconds))})


def failed(called: str, failure: Exception, request_id: RequestId = None) -> Response:
    """Return the response if the bank cannot be asked; unless it is busy, that is an incident."""
    if isinstance(failure, BankBusy):
        retry = {"Retry-After": str(RETRY_SECONDS)}
        return reply(503, request_id, INTERNAL_ERROR, BUSY, retry)
    return reply(503, request_id, INTERNAL_ERROR, incident_words(log_incident(called, failure)))


class UncheckedTokens:
    """Answers a request whose token could not be checked: the bank, or the issuer, is not there.

    ASGI middleware, in front of the one that reads the token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        try:
            await self._app(scope, receive, send)
        # Nothing has been sent: the token is checked before anything else.
        except KeysUnavailable as unavailable:
            words = "Access tokens cannot be checked at the moment. Please try again later."
            retry = {"Retry-After": str(max(1, math.ceil(unavailable.retry_seconds)))}
            await reply(503, None, INTERNAL_ERROR, words, retry)(scope, receive, send)
        except CustomersUnknown as unknown:
            cause = unknown.__cause__
            failure = cause if isinstance(cause, Exception) else unknown
            await failed("the check of a token", failure)(scope, receive, send)
