"""What the server borrows from the inner parts of the MCP SDK, and of Starlette under it.

The SDK promises to keep what its documentation names. A minor release may move the rest, and all
of it that the server uses stands here. `tests/test_sdk_seam.py` asserts each piece, and that no
other module of the server imports any.

- `StreamableHTTPServerTransport` and `serve_loop`: one session. The SDK's own session manager has
  either sessions for all clients of 2025-11-25 or for none, gives no answer as JSON where it has
  them, and refuses new ones when it is full.
- `MCPServer._lowlevel_server`: one connection, over streams of messages. `MCPServer.run("stdio")`
  reads the lines itself, and drops what it cannot read.
- `CallNext`, `HandlerResult`: the types of a middleware, which the SDK calls provisional.
- `build_resource_metadata_url`: where the SDK serves the metadata of a protected resource. A
  refusal has to name the same place.
- `Starlette.user_middleware`: the public `add_middleware` puts a middleware outermost, where
  nobody has read the token yet.
"""

from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp.server import MCPServer
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server as SessionServer
from mcp.server.runner import serve_loop
from mcp.server.streamable_http import StreamableHTTPServerTransport as SessionTransport
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware

__all__ = [
    "CallNext",
    "HandlerResult",
    "SessionServer",
    "SessionTransport",
    "add_behind_authentication",
    "resource_metadata_url",
    "serve_session",
    "serve_streams",
]


def resource_metadata_url(resource: str) -> str:
    """Return the URL at which the SDK serves the metadata of `resource` (RFC 9728)."""
    return str(build_resource_metadata_url(AnyHttpUrl(resource)))


def add_behind_authentication(app: Starlette, middleware: Middleware) -> None:
    """Let `middleware` see each request next to the routes, when its token has been read."""
    app.user_middleware.append(middleware)


async def serve_streams(server: MCPServer[Any], incoming: Any, outgoing: Any) -> None:
    """Serve the one client whose messages come and go on these streams, until they end."""
    inner = server._lowlevel_server
    await inner.run(incoming, outgoing, inner.create_initialization_options())


async def serve_session(
    server: SessionServer[Any],
    transport: SessionTransport,
    lifespan_state: Any,
    task_status: TaskStatus[None],
) -> None:
    """Serve the messages of one session until it is terminated, or has been idle for too long.

    It has started when requests can be handed to `transport`.
    """
    async with transport.connect() as (incoming, outgoing):
        task_status.started()
        with transport.idle_scope or anyio.CancelScope():
            await serve_loop(
                server,
                incoming,
                outgoing,
                lifespan_state=lifespan_state,
                session_id=transport.mcp_session_id,
            )
