"""Answers of the server behind that are none: the SDK drops them silently.

Whoever asked would wait for another answer, which never comes.
"""

from typing import Any, Final

from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from banking_server.proxy.sdk import SessionMessage

OF_A_SERVER: Final = ErrorData(
    code=INTERNAL_ERROR, message="The server answered with something that is no result."
)


def readable(came: Any) -> Any:
    """Return a message as it came over stdio; or an error, for a malformed answer.

    What is no message at all stays the exception that it is: nobody waits for it.
    """
    if not isinstance(came, ValidationError):
        return came
    for problem in came.errors():
        # It is no request either: for want of a method, the whole of it is shown.
        said, where = problem["input"], problem["loc"]
        if problem["type"] == "missing" and len(where) == 2 and where[1] == "method":
            number = said.get("id")
            if isinstance(number, int | str) and not isinstance(number, bool):
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=OF_A_SERVER))
    return came
