"""The programs of the page on the adapters run as they stand there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..kit.bank import World
from ..kit.command import PATIENCE, environment, run
from ..kit.model import Reply, scripted_model
from ..kit.pages import block
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, PREPARE
from .support import FRAMEWORKS, PAGE, missing

pytestmark = [
    pytest.mark.needs_program(missing("pydantic_ai", "pip install '.[dev]'")),
    pytest.mark.needs_program(missing("agents", "pip install '.[dev]'")),
]


@pytest.mark.parametrize("adapter", ["fastmcp", "pydantic_ai", "openai_agents"])
def test_a_program_ends_in_a_handoff_that_the_desk_shows(adapter: str, tmp_path: Path) -> None:
    script = [Reply(calls=[(PREPARE, FROM_LOCKED)]), Reply("Done.")]
    program = tmp_path / "program.py"
    program.write_text(block(PAGE, adapter, "python"), encoding="utf-8")
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with scripted_model(script) as model:
        home = environment(
            HOME=str(tmp_path),
            PATH=commands,
            OPENAI_BASE_URL=model.url,
            OPENAI_API_KEY="none",
            OPENAI_AGENTS_DISABLE_TRACING="1",
        )
        ended = subprocess.run(
            [sys.executable, program], env=home, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended.stderr
        said = ended.stdout if adapter == "fastmcp" else model.last_message()
    # The text is for the customer alone, and Pydantic AI's toolset withholds it from the model.
    assert (LOCKED_TEXT in said) is (adapter != "pydantic_ai")
    reference = said.split("Your reference is ")[1].split(".")[0]
    assert adapter == "fastmcp" or ended.stdout == "Done.\n"
    assert reference in run("handoffs", HOME=str(tmp_path)).stdout


@pytest.mark.anyio
async def test_fastmcp_as_a_server() -> None:
    from fastmcp import Client

    left: dict[str, object] = {"__name__": "orders"}
    exec(block(PAGE, "fastmcp_server", "python"), left)
    async with Client(left["mcp"]) as client:
        shipped = await client.call_tool_mcp("cancel_order", {"order": "A-17"})
    assert shipped.meta["nextTool"] == {"tool": "open_return", "arguments": {"order": "A-17"}}


@pytest.mark.anyio
async def test_the_consent_policy_on_the_page(elsewhere: str, world: World) -> None:
    left: dict[str, object] = {}
    exec(block(PAGE, "consent", "python"), left)
    chaining = left["chaining"]
    said = await FRAMEWORKS["FastMCP"](world.location, (PREPARE, FROM_LOCKED), chaining=chaining)
    assert "Your reference is ho_" in said
    said = await FRAMEWORKS["FastMCP"](elsewhere, ("count", {}), chaining=chaining)
    assert "the host did not agree" in said
