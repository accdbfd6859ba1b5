"""Malformed answers of the server behind the proxy: the SDK drops them silently.

The client would wait for another answer, which never arrives.
"""

from typing import Any, Final

from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from tool_chaining_proxy.sdk import SessionMessage

OF_A_SERVER: Final = ErrorData(
    code=INTERNAL_ERROR, message="The server answered with something that is not a result."
)


def readable(received: Any) -> Any:
    """Return a message from stdio unchanged, or an error in place of a malformed answer.

    An exception for other unreadable input is returned unchanged: no client waits for it.
    """
    if not isinstance(received, ValidationError):
        return received
    for problem in received.errors():
        # It is not a request either: it has no method, and the problem has the whole message.
        message, where = problem["input"], problem["loc"]
        if problem["type"] == "missing" and len(where) == 2 and where[1] == "method":
            number = message.get("id")
            if isinstance(number, int | str) and not isinstance(number, bool):
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=OF_A_SERVER))
    return received
