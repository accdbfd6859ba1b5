"""What the server borrows from the inner parts of the MCP SDK.

The SDK promises to keep what its documentation names. A minor release may move the rest, and all
of it that the server uses stands here. `tests/test_sdk_seam.py` asserts each piece, and that no
other module of the server imports any.

- `StreamableHTTPSessionManager`: both revisions at one endpoint. `MCPServer.streamable_http_app`
  makes one too, but either every answer is a stream of events, or none; and one customer can take
  all sessions. So `_admit_session` is overridden. `_lifespan_state` is the one place where what the
  lifespan yields can be had before a request gets as far as MCP.
- `MCPServer._lowlevel_server`: what the manager serves, and one connection over stdio.
- `AuthenticatedUser` and `AuthContextMiddleware`: by whom the SDK keeps others out of a session,
  and what `get_access_token` returns.
- `MCP_METHOD_HEADER`, `MCP_NAME_HEADER`: which headers the SDK holds a request's body to.
- `build_resource_metadata_url`: where the SDK serves the metadata of a protected resource. A
  refusal has to name the same place.
"""

from typing import Any, Final

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER
from pydantic import AnyHttpUrl

from banking_server.stdio import client_on_stdio
from banking_server.tools import App

__all__ = [
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "AuthContextMiddleware",
    "AuthenticatedUser",
    "SessionManager",
    "resource_metadata_url",
    "serve_stdio",
]

MOST_SESSIONS: Final = 32
"""Sessions that one customer may have in one process; with one more, their oldest ends."""


class SessionManager(StreamableHTTPSessionManager):
    """Serves 2026-07-28 without sessions, answering as JSON, and 2025-11-25 in sessions.

    In a session answers come as events, since a question to the customer goes out before them.
    With `stateless` there are no sessions, and nobody of 2025-11-25 is asked.
    """

    def __init__(self, server: MCPServer[Any], **options: Any) -> None:
        super().__init__(server._lowlevel_server, json_response=True, **options)

    @property
    def opened(self) -> App:
        """What the server's lifespan holds. Raises `RuntimeError` unless the server runs."""
        state: App | None = self._lifespan_state
        if state is None:
            raise RuntimeError("The bank is not open.")
        return state

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        theirs = [session for session, owner in self._session_owners.items() if owner == requestor]
        if len(theirs) >= MOST_SESSIONS and self._task_group is not None:
            oldest = self._server_instances.pop(theirs[0])
            self._task_group.start_soon(self._discard_session, theirs[0], oldest)
        admitted = super()._admit_session(requestor)
        if admitted is not None:
            admitted.is_json_response_enabled = False
        return admitted


def resource_metadata_url(resource: str) -> str:
    """Return the URL at which the SDK serves the metadata of `resource` (RFC 9728)."""
    return str(build_resource_metadata_url(AnyHttpUrl(resource)))


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve the one client on standard input and output, until the input ends."""
    inner = server._lowlevel_server
    async with client_on_stdio() as (incoming, outgoing):
        await inner.run(incoming, outgoing, inner.create_initialization_options())
