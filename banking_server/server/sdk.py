"""The internal parts of the MCP SDK that the server uses.

The SDK keeps only documented names stable; a minor release may change the rest. The server imports
such parts here and nowhere else. `tests/test_architecture.py` asserts that.

- `StreamableHTTPSessionManager`: both revisions at one endpoint. `MCPServer.streamable_http_app`
  makes one too, but there either all responses are event streams or none. So `_admit_session` is
  overridden. `_lifespan_state` holds what the lifespan yields; the access control needs it before
  MCP reads a request.
- `MCPServer._lowlevel_server`: serves the manager's requests, and the connection over stdio.
- `BearerAuthBackend`, `AuthContextMiddleware` and `RequireAuthMiddleware`: the token of a request,
  and its scopes. The documentation shows only `MCPServer.streamable_http_app`, which puts them in
  front of an endpoint with the same scopes for all requests.
- `MCP_METHOD_HEADER`, `MCP_NAME_HEADER`: the headers that must agree with a request's body.
- `SessionMessage`: a message on the streams of the SDK's transports.
- `build_resource_metadata_url`: the URL of the metadata of a protected resource. A refusal names
  the same URL.
"""

from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER
from mcp.shared.message import SessionMessage
from pydantic import AnyHttpUrl

from banking_server.tools.calling import App

__all__ = [
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "AuthContextMiddleware",
    "BearerAuthBackend",
    "RequireAuthMiddleware",
    "SessionManager",
    "SessionMessage",
    "resource_metadata_url",
    "run_server",
]


class SessionManager(StreamableHTTPSessionManager):
    """Serves 2026-07-28 without sessions, with JSON responses, and 2025-11-25 in sessions.

    In a session, responses are event streams, since questions to the customer are sent before the
    result. With `stateless` there are no sessions, and clients of 2025-11-25 cannot be asked.
    """

    def __init__(self, server: MCPServer[Any], **options: Any) -> None:
        super().__init__(server._lowlevel_server, json_response=True, **options)

    @property
    def opened(self) -> App:
        """The `App` of the server's lifespan. Raises `RuntimeError` if the server does not run."""
        state: App | None = self._lifespan_state
        if state is None:
            raise RuntimeError("The bank is not open.")
        return state

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        admitted = super()._admit_session(requestor)
        if admitted is not None:
            admitted.is_json_response_enabled = False
        return admitted


def resource_metadata_url(resource: str) -> AnyHttpUrl:
    """Return the URL of the metadata of `resource` (RFC 9728)."""
    return build_resource_metadata_url(AnyHttpUrl(resource))


async def run_server(server: MCPServer[Any], incoming: Any, outgoing: Any) -> None:
    """Serve one client on these streams, until the first one ends."""
    inner = server._lowlevel_server
    await inner.run(incoming, outgoing, inner.create_initialization_options())
