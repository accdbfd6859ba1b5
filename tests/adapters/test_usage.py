"""The lines of the page on the adapters run as they stand."""

import ast
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ..kit.bank import World
from ..kit.model import Reply, scripted_model
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, PREPARE
from .support import FRAMEWORKS, PAGE, lines_of, missing

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("pydantic_ai", "pip install '.[dev]'")),
    pytest.mark.needs_program(missing("agents", "pip install '.[dev]'")),
]
SCRIPT = [Reply(calls=[(PREPARE, FROM_LOCKED)]), Reply("Done.")]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home for the database, and the command where a shell finds it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


async def run_lines(adapter: str, **names: Any) -> dict[str, Any]:
    lines = lines_of("trusted") + lines_of(adapter)
    code = compile(lines, str(PAGE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, names)
    if inspect.isawaitable(running):
        await running
    return names


async def test_fastmcp() -> None:
    result = (await run_lines("fastmcp"))["result"]
    assert result.content[0].text == LOCKED_TEXT
    assert "Your reference is ho_" in result.content[1].text


async def test_pydantic_ai() -> None:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    with scripted_model(SCRIPT) as scripted:
        provider = OpenAIProvider(base_url=scripted.url, api_key="none")
        names = await run_lines("fastmcp")
        names["model"] = OpenAIChatModel("scripted", provider=provider)
        left = await run_lines("pydantic_ai", **names)
        await left["agent"].run("Go on.")
        assert LOCKED_TEXT in scripted.last_message()
        assert "Your reference is ho_" in scripted.last_message()


async def test_openai_agents() -> None:
    from agents import OpenAIChatCompletionsModel, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    with scripted_model(SCRIPT) as scripted:
        async with AsyncOpenAI(base_url=scripted.url, api_key="none") as endpoint:
            model = OpenAIChatCompletionsModel(model="scripted", openai_client=endpoint)
            left = await run_lines("openai_agents", model=model)
        assert left["ended"].final_output == "Done."
        assert LOCKED_TEXT in scripted.last_message()
        assert "Your reference is ho_" in scripted.last_message()


async def test_fastmcp_as_a_server() -> None:
    from fastmcp import Client

    from banking_server.adapters.fastmcp_server import ToolChainingMiddleware

    mcp = (await run_lines("fastmcp_server"))["mcp"]
    assert any(isinstance(each, ToolChainingMiddleware) for each in mcp.middleware)

    @mcp.tool
    def open_return(order: str) -> str:
        return f"The return of {order} is open."

    await run_lines("fastmcp_tool", mcp=mcp)
    async with Client(mcp) as client:
        shipped = await client.call_tool_mcp("track", {"order": "A-17"})
    directive = {"tool": "open_return", "arguments": {"order": "A-17"}}
    assert shipped.meta["nextTool"] == directive


async def test_a_policy_of_ones_own(anything: str, world: World) -> None:
    chaining = (await run_lines("consent"))["chaining"]
    said = await FRAMEWORKS["FastMCP"](world.location, (PREPARE, FROM_LOCKED), chaining=chaining)
    assert "Your reference is ho_" in said
    said = await FRAMEWORKS["FastMCP"](anything, ("count", {}), chaining=chaining)
    assert "the host did not consent" in said
