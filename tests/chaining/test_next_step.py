"""`nextStep`: the directive in structured content, for hosts that show their model nothing else."""

from typing import Annotated, Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel

from tool_chaining import CLIENT_EXTENSION, NextStep, add_tool_chaining, with_next_tool

from .support import connect

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

STEP = {"tool": "target", "arguments": {"reason": "locked"}}
OTHER = {"tool": "target", "arguments": {"reason": "another"}}


class WithStep(BaseModel):
    n: int
    nextStep: NextStep | None = None


class WithoutStep(BaseModel):
    n: int


class OfItsOwn(BaseModel):
    """Where `nextStep` means something else."""

    n: int
    nextStep: str = ""


def bank(schema: Any, structured: dict[str, Any], tool: str = "target") -> MCPServer[Any]:
    """A server with a tool of this output schema that names another one."""
    mcp: MCPServer[Any] = MCPServer("steps")
    add_tool_chaining(mcp)
    content = [TextContent(type="text", text="Told.")]
    told = CallToolResult(content=content, structured_content=structured)

    async def emit() -> Any:
        return with_next_tool(told, tool, {"reason": "locked"}, title="Why")

    emit.__annotations__["return"] = Annotated[CallToolResult, schema] if schema else CallToolResult
    mcp.add_tool(emit)

    @mcp.tool(annotations=ToolAnnotations(destructive_hint=False))
    async def target(reason: str) -> str:
        return reason

    return mcp


async def structured(mcp: MCPServer[Any], *, declared: bool = False) -> Any:
    extensions = [CLIENT_EXTENSION] if declared else []
    async with connect(mcp, "auto", extensions=extensions) as client:
        result = await client.call_tool("emit", {})
    assert "nextStep" not in "".join(block.text for block in result.content)  # type: ignore[union-attr]
    return result.structured_content


@pytest.mark.parametrize(
    ("schema", "own", "told", "declared"),
    [
        # It says what the directive says, to clients that did not declare.
        (WithStep, {}, {"nextStep": STEP}, {}),
        (WithStep, {"nextStep": None}, {"nextStep": STEP}, {}),
        (WithStep, {"nextStep": OTHER}, {"nextStep": STEP}, {}),
        # It stands only where the output schema has a place for it.
        (WithoutStep, {}, {}, {}),
        (OfItsOwn, {}, {}, {}),
        (None, {}, {}, {}),
        # A copy of the tool's own is made the same; what means something else stays.
        (None, {"nextStep": OTHER}, {"nextStep": STEP}, {}),
        (OfItsOwn, {"nextStep": "Friday"}, {"nextStep": "Friday"}, {"nextStep": "Friday"}),
    ],
)
async def test_the_output_schema_decides_where_next_step_stands(
    schema: Any, own: Any, told: dict[str, Any], declared: dict[str, Any]
) -> None:
    mcp = bank(schema, {"n": 1, **own})
    assert await structured(mcp) == {"n": 1, **told}
    assert await structured(mcp, declared=True) == {"n": 1, **declared}


@pytest.mark.parametrize("own", [{}, {"nextStep": STEP}], ids=str)
async def test_a_directive_that_is_dropped_takes_it_with_it(own: dict[str, Any]) -> None:
    assert await structured(bank(WithStep, {"n": 1, **own}, "nowhere")) == {"n": 1}
