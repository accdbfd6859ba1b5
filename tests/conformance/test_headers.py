"""The suite's own writing of headers: read back, and held to what the SDK writes."""

from typing import Any

import pytest
from mcp.shared import inbound

from tool_chaining_conformance.target.headers import argument_headers

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
    assert argument_headers(SCHEMA, arguments) == expected
    assert inbound.validate_mcp_param_headers(SCHEMA, arguments, expected) is None
