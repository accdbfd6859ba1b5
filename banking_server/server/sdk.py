"""The internal parts of the MCP SDK that the server uses.

The SDK keeps only documented names stable; a minor release may change the rest. The server imports
such parts here and nowhere else. `tests/test_architecture.py` asserts that.

- `StreamableHTTPSessionManager`: both revisions at one endpoint. `MCPServer.streamable_http_app`
  makes one too, but there either all responses are event streams or none, and one customer can
  take all sessions. So `_admit_session` is overridden. `_lifespan_state` holds what the lifespan
  yields; the access control needs it before MCP reads a request.
- `MCPServer._lowlevel_server`: serves the manager's requests, and the connection over stdio.
- `AuthenticatedUser` and `AuthContextMiddleware`: the owner of a session, for the SDK's check, and
  the result of `get_access_token`.
- `MCP_METHOD_HEADER`, `MCP_NAME_HEADER`: the headers that must agree with a request's body.
- `build_resource_metadata_url`: the URL of the metadata of a protected resource. A refusal names
  the same URL.
"""

from collections import Counter
from typing import Any, Final

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER
from pydantic import AnyHttpUrl

from banking_server.tools.calling import App

__all__ = [
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "AuthContextMiddleware",
    "AuthenticatedUser",
    "SessionManager",
    "resource_metadata_url",
    "run_server",
]

MOST_SESSIONS: Final = 32
"""Sessions of one customer in one process; one more session ends the customer's oldest one.

If all sessions are taken, a new one ends the oldest one of the customer who has the most. So no
customer keeps others out with sessions that are left behind.
"""


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
        of_customer = {name: owner["subject"] for name, owner in self._session_owners.items()}
        counted = Counter(of_customer.values())
        crowded = None
        if counted[requestor["subject"]] >= MOST_SESSIONS:
            crowded = requestor["subject"]
        elif self.max_sessions is not None and len(of_customer) >= self.max_sessions:
            crowded = counted.most_common(1)[0][0]
        if crowded is not None and self._task_group is not None:
            oldest = next(name for name, customer in of_customer.items() if customer == crowded)
            del self._session_owners[oldest]
            session = self._server_instances.pop(oldest)
            self._task_group.start_soon(self._discard_session, oldest, session)
        admitted = super()._admit_session(requestor)
        if admitted is not None:
            admitted.is_json_response_enabled = False
        return admitted


def resource_metadata_url(resource: str) -> str:
    """Return the URL at which the SDK serves the metadata of `resource` (RFC 9728)."""
    return str(build_resource_metadata_url(AnyHttpUrl(resource)))


async def run_server(server: MCPServer[Any], incoming: Any, outgoing: Any) -> None:
    """Serve one client on these streams, until the first one ends."""
    inner = server._lowlevel_server
    await inner.run(incoming, outgoing, inner.create_initialization_options())
