"""The suite's own writing of headers: read back, and held to what the SDK writes."""

from typing import Any

import pytest
from mcp.shared import inbound

from banking_server.conformance.target.headers import mirrored, of_arguments

pytestmark = pytest.mark.quick

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "x-mcp-header": "Text"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        "silent": {"type": "string"},
        "inner": {
            "type": "object",
            "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}},
        },
    },
}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": "x", "count": 3, "flag": True, "silent": "y"},
        {"text": None, "count": None, "flag": None},
        {"text": ["a"], "count": {"a": 1}},
        {"text": 1.5, "count": True, "flag": "yes"},
        {"inner": {"deep": " x "}},
        {"inner": {"deep": None}},
    ],
    ids=str,
)
def test_arguments_have_the_headers_that_the_sdk_sends(arguments: dict[str, Any]) -> None:
    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(SCHEMA), arguments)
    assert of_arguments(SCHEMA, arguments) == expected
    assert inbound.validate_mcp_param_headers(SCHEMA, arguments, expected) is None


def test_a_message_of_2026_07_28_has_its_headers() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    call = {"name": "überweisen", "arguments": {"count": 7}, "_meta": meta}
    assert mirrored({"method": "tools/call", "params": call}, SCHEMA) == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?w7xiZXJ3ZWlzZW4=?=",
        "Mcp-Param-Count": "7",
    }
    assert mirrored({"method": "tools/list", "params": {"_meta": meta}}) == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/list",
    }
