"""The OAuth scopes of a bearer token, and the check that a call has the scope it needs.

Each tool declares its scope and checks it before it runs. Over stdio there is no token, and the
customer may do everything.
"""

from typing import Final, Literal

from mcp import MCPError
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.types import INVALID_REQUEST

Scope = Literal["bank:read", "bank:transfer"]

READ_SCOPE: Final = "bank:read"
"""The scope for reading accounts and asking for help. Every request needs it."""

TRANSFER_SCOPE: Final = "bank:transfer"
"""The scope for preparing, confirming and cancelling transfers."""


class ScopeMissing(MCPError):
    """The token of a call lacks the scope that the call needs."""


def has_scope(scope: Scope) -> bool:
    """Return whether the current call's token carries `scope`; without a token all is allowed."""
    token = get_access_token()
    return token is None or scope in token.scopes


def check_scope(scope: Scope, called: str) -> None:
    """Raise `ScopeMissing`, which names what was `called`, if the token lacks `scope`."""
    if not has_scope(scope):
        raise ScopeMissing(INVALID_REQUEST, f"{called} needs a token with the scope {scope}.")
