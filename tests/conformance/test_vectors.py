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
from banking_server.conformance.values import same
from banking_server.packaged import packaged

from ..specs.files import writable

SPECS = packaged("specs")
SCHEMA = json.loads((SPECS / "next-tool.schema.json").read_text("utf-8"))
VECTORS = json.loads((SPECS / "conformance" / "directives.json").read_text("utf-8"))["vectors"]

pytestmark = pytest.mark.anyio


def meets(name: str, value: Any) -> bool:
    return Draft202012Validator({**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]}).is_valid(value)


def meta_of(vector: dict[str, Any]) -> dict[str, Any] | None:
    """The `_meta` of a vector, as a parser that cannot tell what stands twice has it."""
    meta: dict[str, Any] | None = json.loads(vector["text"]) if "text" in vector else vector["meta"]
    return meta


def by_schema(meta: dict[str, Any] | None) -> str:
    """Read `meta` as the schema does, with the rules that a schema cannot state."""
    if meta is None or META_KEY not in meta:
        return "absent"
    value = meta[META_KEY]
    if not meets("directive", value) or not writable(value):
        return "malformed"
    both = "tool" in value and "name" in value
    return "malformed" if both and value["tool"] != value["name"] else "valid"


def by_client_half(meta: dict[str, Any] | None) -> dict[str, Any]:
    reading = read_directive(meta)
    if not isinstance(reading, Found):
        return {"status": {Absent: "absent", Malformed: "malformed"}[type(reading)]}
    directive = reading.directive
    return {
        "status": "valid",
        "tool": directive.tool,
        "arguments": directive.arguments,
        "alias": reading.deprecated_alias,
        **({} if directive.title is None else {"title": directive.title}),
    }


async def sent_by_server_half(vector: dict[str, Any]) -> Any:
    """Let a server return the vector's `_meta`; return the directive that goes out, or None."""
    chaining = ToolChaining()
    mcp = MCPServer("vectors", extensions=[chaining])
    chaining.bind(mcp)
    meta = meta_of(vector)

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


CANNOT_TELL = [vector for vector in VECTORS if vector.get("parser") != "duplicates"]
"""The vectors for readers that get what a parser made of them, in which no name stands twice."""


@pytest.mark.parametrize("vector", CANNOT_TELL, ids=lambda vector: vector["id"])
async def test_all_three_read_a_vector_alike(vector: dict[str, Any]) -> None:
    meta, reading = meta_of(vector), vector["reading"]
    assert by_schema(meta) == reading["status"]
    assert same(by_client_half(meta), reading)

    sent = await sent_by_server_half(vector)
    if reading["status"] != "valid" or reading["alias"]:
        assert sent is None
        return
    # What a directive does not have is left out on the way; nothing else changes.
    assert meets("emittedDirective", sent)
    assert same([sent["tool"], sent["arguments"]], [reading["tool"], reading["arguments"]])
    if vector["emittable"]:
        assert sent.get("title") == reading.get("title")
