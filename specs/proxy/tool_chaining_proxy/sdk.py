"""The internal parts of the MCP SDK that the proxy uses.

The SDK keeps only what its documentation names stable. A minor release may change the rest, and
this module holds all of it that the proxy uses: `tests/test_architecture.py` asserts that no other
module of the proxy imports any.

- `ServerSession._request_outbound` and `._connection`: the channels to the client, for messages
  with and without a request. The public methods take and check models, and the proxy has raw JSON.
- `Connection.state` and `.exit_stack`: values of one connection, and functions to call at its end.
- `JSONRPCDispatcher`: requests and notifications over a transport's streams as raw JSON.
  `mcp.Client` would read results into models, and lose members that these do not know.
- `SessionMessage`: a message on those streams.
- `mcp.shared.inbound`: which HTTP headers repeat which members of a request on 2026-07-28.
- `StreamableHTTPSessionManager`: both revisions over HTTP. `Server.streamable_http_app` makes one
  too, but it accepts no user without a check of tokens, and the proxy does not check tokens.
- `AuthenticatedUser`: the only user whom the session manager lets use a session.
"""

from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.dispatcher import CallOptions, DispatchContext, Outbound
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

__all__ = [
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "MCP_PROTOCOL_VERSION_HEADER",
    "MCP_SESSION_ID_HEADER",
    "NAME_BEARING_METHODS",
    "SUBSCRIPTION_ID_META_KEY",
    "CallNext",
    "CallOptions",
    "Connection",
    "Context",
    "DispatchContext",
    "HandlerResult",
    "JSONRPCDispatcher",
    "Outbound",
    "SessionMessage",
    "StreamableHTTPSessionManager",
    "allowed_log_levels",
    "authenticated_as",
    "connection_of",
    "encode_header_value",
    "find_invalid_x_mcp_header",
    "mcp_param_headers",
    "request_channel",
    "x_mcp_header_map",
]

Context = ServerRequestContext[Any, Any]
"""The SDK's context of one message of the client."""


def request_channel(ctx: Context) -> Outbound:
    """Return the channel to the client for messages of its request."""
    return ctx.session._request_outbound


def connection_of(ctx: Context) -> Connection:
    """Return the connection of the client's message."""
    return ctx.session._connection


def authenticated_as(name: str) -> AuthenticatedUser:
    """Return the user `name` in the SDK's form."""
    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
