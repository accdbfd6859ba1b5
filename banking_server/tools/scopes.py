"""The OAuth scopes that a bearer token may carry, and the check that a call has the one it needs.

Each tool says in its declaration which scope it needs, and checks it before it runs. Whoever
started a server over stdio has no token, and may do everything.
"""

from typing import Final, Literal

from mcp import MCPError
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.types import INVALID_REQUEST

Scope = Literal["bank:read", "bank:transfer"]

READ_SCOPE: Final = "bank:read"
"""See one's accounts, and ask for help. Every request needs it."""

TRANSFER_SCOPE: Final = "bank:transfer"
"""Prepare, confirm and cancel transfers, and what belongs to them."""


class ScopeMissing(MCPError):
    """The token that a call came with lacks the scope that the call needs."""


def has_scope(scope: Scope) -> bool:
    """Return whether the current call's token carries `scope`; without a token all is allowed."""
    token = get_access_token()
    return token is None or scope in token.scopes


def check_scope(scope: Scope, called: str) -> None:
    """Raise `ScopeMissing`, which names what was `called`, if the token lacks `scope`."""
    if not has_scope(scope):
        raise ScopeMissing(INVALID_REQUEST, f"{called} needs a token with the scope {scope}.")
