"""The directive vectors: JSON Schema, the server half and the client half agree on each."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent

from banking_server.chaining import (
    CLIENT_EXTENSION,
    META_KEY,
    Absent,
    Found,
    Malformed,
    ToolChaining,
    read_directive,
)
from banking_server.packaged import packaged

SPECS = packaged("specs")
SCHEMA = json.loads((SPECS / "next-tool.schema.json").read_text("utf-8"))
VECTORS = json.loads((SPECS / "conformance" / "directives.json").read_text("utf-8"))["vectors"]

pytestmark = pytest.mark.anyio


def meets(name: str, value: Any) -> bool:
    return Draft202012Validator({**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]}).is_valid(value)


def by_schema(meta: dict[str, Any] | None) -> str:
    """Read `meta` as the schema does, with the one rule that a schema cannot state."""
    if meta is None or META_KEY not in meta:
        return "absent"
    value = meta[META_KEY]
    if not meets("directive", value):
        return "malformed"
    both = "tool" in value and "name" in value
    return "malformed" if both and value["tool"] != value["name"] else "valid"


def by_client_half(meta: dict[str, Any] | None) -> dict[str, Any]:
    reading = read_directive(meta)
    if isinstance(reading, Found):
        return {
            "status": "valid",
            "tool": reading.directive.tool,
            "arguments": reading.directive.arguments,
            "alias": reading.deprecated_alias,
        }
    return {"status": {Absent: "absent", Malformed: "malformed"}[type(reading)]}


async def sent_by_server_half(vector: dict[str, Any]) -> Any:
    """Let a server return the vector's `_meta`; return the directive that goes out, or None."""
    chaining = ToolChaining()
    mcp = MCPServer("vectors", extensions=[chaining])
    chaining.bind(mcp)
    meta = vector["meta"]

    @mcp.tool()
    async def emit() -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="Here.")], _meta=meta)

    # The tool that it names takes anything: only the form of the directive is looked at.
    named = vector["reading"].get("tool")
    if named is not None:
        mcp.add_tool(lambda: "anything", name=named)
    async with Client(mcp, extensions=[CLIENT_EXTENSION]) as client:
        result = await client.call_tool("emit", {})
    return (result.meta or {}).get(META_KEY)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
async def test_all_three_read_a_vector_alike(vector: dict[str, Any]) -> None:
    reading = vector["reading"]
    assert by_schema(vector["meta"]) == reading["status"]
    assert by_client_half(vector["meta"]) == reading

    sent = await sent_by_server_half(vector)
    if reading["status"] != "valid" or reading["alias"]:
        assert sent is None
        return
    # Members that a directive does not have are left out on the way; nothing else changes.
    assert meets("emittedDirective", sent)
    assert (sent["tool"], sent["arguments"]) == (reading["tool"], reading["arguments"])
    plain = set(vector["meta"][META_KEY]) <= {"tool", "arguments"}
    assert plain == vector["emittable"]
