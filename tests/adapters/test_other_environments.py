"""What cannot share an environment with the rest: LangChain, LangGraph, and all else on `mcp` 1.x.

An environment is made by

    python -m venv langchain
    langchain/bin/pip install -r tests/adapters/requirements-langchain.txt
    langchain/bin/pip install --no-deps .

and named to these tests by `LANGCHAIN_PYTHON=langchain/bin/python`. The servers run in this one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..kit.bank import SECRET, World
from ..kit.command import ANY_SERVER, PATIENCE
from ..kit.cutting import cutting_server
from ..kit.model import Reply, ScriptedModel, scripted_model
from ..kit.pages import block
from ..kit.servers import http_server
from ..kit.words import FROM_LOCKED, HANDOFF, LOCKED_TEXT, PREPARE
from .support import PAGE, Call, Server, stdio

PYTHON = os.environ.get("LANGCHAIN_PYTHON")
MISSING = None if PYTHON else f"LANGCHAIN_PYTHON is not set: see {Path(__file__).name}"
pytestmark = pytest.mark.needs_program(MISSING)

JOBS = Path(__file__).with_name("in_langchain.py")


Connection = dict[str, Any]
"""How `langchain-mcp-adapters` reaches a server."""


def over_http(url: str, **headers: str) -> Connection:
    return {"transport": "streamable_http", "url": url, "headers": headers}


class Other:
    """The other environment, one job at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def __call__(self, do: str, server: Server | Connection, **job: Any) -> Any:
        reached = over_http(server) if isinstance(server, str) else server
        if not isinstance(reached, dict):
            reached = {**stdio(reached), "transport": "stdio"}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, "server": reached, **job}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "raised" in answer:
            raise RuntimeError(answer["raised"])
        return answer["answer"]

    def agent(
        self,
        server: Server | Connection,
        call: Call,
        way: str = "session",
        times: int = 1,
        **job: Any,
    ) -> tuple[dict[str, Any], ScriptedModel]:
        """Let a LangChain agent's model make a call; return what it is told of the last one."""
        with scripted_model([*[Reply(calls=[call])] * times, Reply("Done.")]) as model:
            options = {"model": model.url, "way": way, **job}
            return self("agent", server, **options), model


def environment() -> dict[str, str]:
    """Return this process's environment, but for what leads to its packages."""
    own = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in own}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    # No command of this environment is on its path.
    commands = f"{Path(str(PYTHON)).parent}{os.pathsep}{os.defpath}"
    home = {"HOME": str(tmp_path_factory.mktemp("home")), "PATH": commands}
    process = subprocess.Popen(
        [str(PYTHON), str(JOBS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), **home},
    )
    with process:
        yield Other(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_a_destructive_step_needs_consent(elsewhere: str, other: Other) -> None:
    said = other.agent(elsewhere, ("tidy_up", {}))[0]["told"]
    assert "was not made: nobody could be asked to allow it" in said
    assert "Everything is gone." not in said

    said = other.agent(elsewhere, ("tidy_up", {}), "client", always=True)[0]["told"]
    assert said.index("There is a lot to delete.") < said.index("Everything is gone.")


def test_a_lost_step_is_not_repeated_and_progress_is_reported(other: Other) -> None:
    answer, _ = other.agent((sys.executable, str(ANY_SERVER)), ("begin", {}), "client", times=2)
    said = answer["told"]
    assert said.index("It has begun.") < said.index("an earlier call may have taken effect")
    # Each call has a session of its own, and what is in doubt outlives it.
    assert answer["progress"] == [1, 2, 1]


def test_headers_of_other_interceptors_apply_to_the_whole_chain(world: World, other: Other) -> None:
    assert isinstance(world.location, Path)
    with http_server(world.location.parent, BANKING_SECRET=SECRET) as server:
        somebody = over_http(server.url, Authorization=f"Bearer {server.token('CUST002')}")
        customer = f"Bearer {server.token('CUST001')}"
        other("headers", somebody, call=HANDOFF, authorization=customer)
    assert [event["customer_id"] for event in world.events()] == ["CUST001"]


def test_completed_steps_are_reported_when_the_session_breaks(other: Other) -> None:
    """`mcp` 1.x then cancels whoever opened the session."""
    with cutting_server() as (url, called):
        said = other.agent(url, ("begin", {}), "client")[0]["told"]
    assert called == ["begin", "cut"]
    assert "it is not known whether it took effect" in said


@pytest.mark.parametrize("adapter", ["langchain", "mcp_1"])
def test_the_programs_of_the_page_run(world: World, tmp_path: Path, adapter: str) -> None:
    """The server runs in this environment, and nothing of it is on the other's path."""
    assert isinstance(world.location, Path)
    script = [Reply(calls=[(PREPARE, FROM_LOCKED)]), Reply("Done.")]
    program = tmp_path / "program.py"
    with (
        http_server(world.location.parent, BANKING_SECRET=SECRET) as server,
        scripted_model(script) as model,
    ):
        page = block(PAGE, adapter, "python")
        program.write_text(page.replace("http://127.0.0.1:8000/mcp", server.url), encoding="utf-8")
        home = environment() | {"MCP_TOKEN": server.token()}
        home |= {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        ended = subprocess.run(
            [str(PYTHON), program], env=home, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended.stderr
        said = ended.stdout if adapter == "mcp_1" else str(model.requests[-1]["messages"][-1])
    assert LOCKED_TEXT.partition("'")[2] in said
    assert [event["chain_level"] for event in world.events()] == [1, 2]
    assert world.sql("SELECT handoff_id FROM handoff")[0][0] in said
