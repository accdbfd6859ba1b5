"""The directive vectors, sent by the server half. The client half reads them in the suite's run."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent, Tool

from tool_chaining import CLIENT_EXTENSION, add_tool_chaining
from tool_chaining.directive import META_KEY
from tool_chaining_conformance.specification import SPECS
from tool_chaining_conformance.values import same

SCHEMA = json.loads((SPECS / "next-tool.schema.json").read_text("utf-8"))
VECTORS = json.loads((SPECS / "conformance" / "directives.json").read_text("utf-8"))["vectors"]

pytestmark = pytest.mark.anyio


def meets(name: str, value: Any) -> bool:
    return Draft202012Validator({**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]}).is_valid(value)


def meta_of(vector: dict[str, Any]) -> dict[str, Any] | None:
    """The `_meta` of a vector, as a parser that cannot tell what stands twice has it."""
    meta: dict[str, Any] | None = json.loads(vector["text"]) if "text" in vector else vector["meta"]
    return meta


class Anything(MCPServer[Any]):
    """Lists the tool that a directive names, which takes anything: only the form is looked at."""

    named: str | None = None

    async def list_tools(self) -> list[Tool]:
        schema = {"type": "object", "additionalProperties": True}
        more = [] if self.named is None else [Tool(name=self.named, input_schema=schema)]
        return [*await super().list_tools(), *more]


async def sent_by_server_half(vector: dict[str, Any]) -> Any:
    """Let a server return the vector's `_meta`; return the directive that goes out, or None."""
    mcp = Anything("vectors")
    add_tool_chaining(mcp)
    mcp.named = vector["reading"].get("tool")
    meta = meta_of(vector)

    @mcp.tool()
    async def emit() -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="Here.")], _meta=meta)

    async with Client(mcp, extensions=[CLIENT_EXTENSION]) as client:
        try:
            result = await client.call_tool("emit", {})
        except MCPError:  # No server of the SDK can send half of a surrogate pair in a name.
            return None
    return (result.meta or {}).get(META_KEY)


CANNOT_TELL = [vector for vector in VECTORS if vector.get("parser") != "duplicates"]
"""The vectors for readers that get what a parser made of them, in which no name stands twice."""


@pytest.mark.parametrize("vector", CANNOT_TELL, ids=lambda vector: vector["id"])
async def test_the_server_half_sends_what_a_vector_allows(vector: dict[str, Any]) -> None:
    meta, reading = meta_of(vector), vector["reading"]
    sent = await sent_by_server_half(vector)
    if reading["status"] != "valid":
        assert sent is None
        return
    value = (meta or {})[META_KEY]
    defined = {name: value[name] for name in ("arguments", "title") if name in value}
    defined["tool"] = reading["tool"]
    # Members that a directive does not have are left out on the way. For a title or a number that
    # may be read and not be sent, the whole directive is; but of a number that is too small, the
    # parser has made 0 before the server half can see it.
    if not vector["emittable"] and value == defined and vector["id"] != "number-too-small":
        assert sent is None
        return
    assert meets("emittedDirective", sent)
    assert same(sent, {"arguments": {}, **defined})
