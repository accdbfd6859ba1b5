"""`nextStep`: the directive in structured content, for hosts that show their model nothing else."""

from typing import Annotated, Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel

from tool_chaining import (
    CLIENT_EXTENSION,
    NextStep,
    add_tool_chaining,
    with_next_tool,
)

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


def bank(structured: dict[str, Any] | None, **directive: Any) -> MCPServer[Any]:
    """A server whose tools return the same, and differ in their output schemas."""
    mcp: MCPServer[Any] = MCPServer("steps")
    add_tool_chaining(mcp)
    answer = CallToolResult(
        content=[TextContent(type="text", text="Told.")], structured_content=structured
    )
    chosen = {**STEP, **directive}

    @mcp.tool()
    async def with_step() -> Annotated[CallToolResult, WithStep]:
        return with_next_tool(answer, chosen["tool"], chosen["arguments"], title="Why")

    @mcp.tool()
    async def without_step() -> Annotated[CallToolResult, WithoutStep]:
        return with_next_tool(answer, chosen["tool"], chosen["arguments"])

    @mcp.tool()
    async def of_its_own() -> Annotated[CallToolResult, OfItsOwn]:
        return with_next_tool(answer, chosen["tool"], chosen["arguments"])

    @mcp.tool()
    async def no_schema() -> CallToolResult:
        return with_next_tool(answer, chosen["tool"], chosen["arguments"])

    @mcp.tool(annotations=ToolAnnotations(destructive_hint=False))
    async def target(reason: str) -> str:
        return reason

    return mcp


async def structured(mcp: MCPServer[Any], tool: str, *, declared: bool = False) -> Any:
    extensions = [CLIENT_EXTENSION] if declared else []
    async with connect(mcp, "auto", extensions=extensions) as client:
        result = await client.call_tool(tool, {})
    assert "nextStep" not in "".join(block.text for block in result.content)  # type: ignore[union-attr]
    return result.structured_content


@pytest.mark.parametrize(
    ("tool", "own", "told", "declared"),
    [
        # It says what the directive says, to clients that did not declare.
        ("with_step", {}, {"nextStep": STEP}, {}),
        ("with_step", {"nextStep": None}, {"nextStep": STEP}, {}),
        ("with_step", {"nextStep": OTHER}, {"nextStep": STEP}, {}),
        # It stands only where the output schema has a place for it.
        ("without_step", {}, {}, {}),
        ("of_its_own", {}, {}, {}),
        ("no_schema", {}, {}, {}),
        # A copy of the tool's own is made the same; what means something else stays.
        ("no_schema", {"nextStep": OTHER}, {"nextStep": STEP}, {}),
        ("of_its_own", {"nextStep": "Friday"}, {"nextStep": "Friday"}, {"nextStep": "Friday"}),
    ],
)
async def test_where_it_stands_and_what_it_says(
    tool: str, own: Any, told: dict[str, Any], declared: dict[str, Any]
) -> None:
    mcp = bank({"n": 1, **own})
    assert await structured(mcp, tool) == {"n": 1, **told}
    assert await structured(mcp, tool, declared=True) == {"n": 1, **declared}


@pytest.mark.parametrize("own", [{}, {"nextStep": STEP}], ids=str)
async def test_a_directive_that_is_dropped_takes_it_with_it(own: dict[str, Any]) -> None:
    assert await structured(bank({"n": 1, **own}, tool="nowhere"), "with_step") == {"n": 1}
