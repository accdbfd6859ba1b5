"""The internal parts of the MCP SDK that the proxy uses.

The SDK keeps only what its documentation names stable. A minor release may change the rest, and
this module holds all of it that the proxy uses: `tests/test_architecture.py` asserts that no other
module of the proxy imports any.

- `SessionMessage`: a message on the streams of the SDK's transports, with its HTTP headers.
- `mcp.shared.inbound`: which HTTP headers repeat which members of a request on 2026-07-28.
- `SUBSCRIPTION_ID_META_KEY`: the member of `_meta` that names a stream of changes.
"""

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    InboundLadderRejection,
    classify_inbound_request,
    encode_header_value,
    find_duplicated_routing_header,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

__all__ = [
    "ERROR_CODE_HTTP_STATUS",
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "MCP_PROTOCOL_VERSION_HEADER",
    "NAME_BEARING_METHODS",
    "SUBSCRIPTION_ID_META_KEY",
    "ClientMessageMetadata",
    "InboundLadderRejection",
    "SessionMessage",
    "classify_inbound_request",
    "encode_header_value",
    "find_duplicated_routing_header",
    "find_invalid_x_mcp_header",
    "mcp_param_headers",
    "x_mcp_header_map",
]
