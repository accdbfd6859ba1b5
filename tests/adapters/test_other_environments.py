"""What cannot share an environment with the rest: LangChain, LangGraph, and all else on `mcp` 1.x.

An environment is made by

    python -m venv langchain
    langchain/bin/pip install . -r tests/adapters/requirements-langchain.txt

and named to these tests by `LANGCHAIN_PYTHON=langchain/bin/python`. The servers run in this one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ..kit.bank import SECRET, World
from ..kit.command import ANY_SERVER, PATIENCE
from ..kit.command import command as bank_command
from ..kit.model import Reply, ScriptedModel, scripted_model
from ..kit.servers import http_server
from ..kit.serving import running
from ..kit.words import FROM_LOCKED, HANDOFF, LOCKED_TEXT, PREPARE
from ..proxy.pipe import PROXY
from ..proxy.wire import proxy_over_http
from .support import Call, Server, lines_of, stdio

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
        reached: Connection
        if isinstance(server, str):
            reached = over_http(server)
        else:
            reached = (
                server if isinstance(server, dict) else {**stdio(server), "transport": "stdio"}
            )
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
        follow: bool = True,
        **job: Any,
    ) -> tuple[dict[str, Any], ScriptedModel]:
        """Let a LangChain agent's model make one call."""
        with scripted_model([Reply(calls=[call]), Reply("Done.")]) as model:
            options = {"model": model.url, "way": way, "follow": follow, **job}
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


@pytest.mark.parametrize("way", ["session", "client"])
def test_the_locked_account_hands_itself_off(world: World, other: Other, way: str) -> None:
    answer, model = other.agent(world.location, (PREPARE, FROM_LOCKED), way)

    first, second = world.events()
    assert [first["tool"], second["tool"]] == [PREPARE, HANDOFF]
    assert first["chain_id"] == second["chain_id"]
    assert [first["chain_level"], second["chain_level"]] == [1, 2]
    assert world.sql("SELECT choice FROM handoff") == [("callback",)]
    said = answer["told"]
    assert said.index(LOCKED_TEXT) < said.index("Your reference is ho_")
    assert said.count("That call was made for you: do not make it again.") == 1
    assert "Next step suggested" not in said
    assert answer["artifact"]["structured_content"]["status"] == "account_locked"
    assert len(model.requests) == 2


def test_a_step_that_may_destroy_needs_consent(anything: str, other: Other) -> None:
    said = other.agent(anything, ("tidy_up", {}))[0]["told"]
    assert "That call was not made: the host did not consent" in said
    assert "Everything is gone." not in said

    said = other.agent(anything, ("tidy_up", {}), "client", always=True)[0]["told"]
    assert said.index("There is a lot to delete.") < said.index("Everything is gone.")


@pytest.mark.parametrize("way", ["session", "client"])
def test_a_step_that_brings_no_result_is_told(anything: str, other: Other, way: str) -> None:
    said = other.agent(anything, ("begin", {}), way)[0]["told"]
    assert said.index("It has begun.") < said.index("whether it took effect is not known")


@pytest.mark.parametrize("way", ["session", "client"])
@pytest.mark.parametrize("tool", ["fail", "break_off", "steer"])
def test_without_a_directive_all_is_as_it_was(
    anything: str, other: Other, tool: str, way: str
) -> None:
    outcomes = []
    for follow in (False, True):
        try:
            outcomes.append(other.agent(anything, (tool, {}), way, follow)[0])
        except RuntimeError as error:
            outcomes.append({"raised": str(error)})
    assert outcomes[0] == outcomes[1]
    assert ("raised" in outcomes[0]) == (tool == "break_off")


def test_the_progress_of_each_call_is_told(other: Other) -> None:
    started = (sys.executable, str(ANY_SERVER))
    assert other.agent(started, ("begin", {}), "client")[0]["progress"] == [1, 2]


def test_headers_of_other_interceptors_are_those_of_the_whole_chain(
    world: World, other: Other
) -> None:
    assert isinstance(world.location, Path)
    with http_server(world.location.parent, BANKING_SECRET=SECRET) as server:
        somebody = over_http(server.url, Authorization=f"Bearer {server.token('CUST002')}")
        customer = f"Bearer {server.token('CUST001')}"
        other("headers", somebody, call=HANDOFF, authorization=customer)
    assert [event["customer_id"] for event in world.events()] == ["CUST001"]


class Breaking(BaseHTTPRequestHandler):
    """A server of 2025-11-25 that breaks in the middle of a chain."""

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tool = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        begun = {
            "content": [{"type": "text", "text": "It has begun."}],
            "_meta": {"nextTool": {"tool": "break_off"}},
        }
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "breaking", "version": "1"},
            },
            "tools/list": {"tools": [{"name": name, **tool} for name in ("begin", "break_off")]},
            "begin": begun,
        }
        result = results.get(request.get("params", {}).get("name", request["method"]))
        answer = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": result}).encode()
        notified = 202 if "id" not in request else None
        self.send_response(notified or (500 if result is None else 200))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "0" if result is None else str(len(answer)))
        self.end_headers()
        if result is not None:
            self.wfile.write(answer)

    def do_GET(self) -> None:
        self.send_error(405)

    do_DELETE = do_GET


def test_what_was_done_is_told_when_the_session_breaks(other: Other) -> None:
    """`mcp` 1.x then cancels whoever opened the session."""
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Breaking)) as origin:
        said = other.agent(f"{origin}/mcp", ("begin", {}), "client")[0]["told"]
        assert said.index("It has begun.") < said.index("whether it took effect is not known")
        with pytest.raises(RuntimeError, match="500"):
            other.agent(f"{origin}/mcp", ("break_off", {}), "client")


def test_all_tools_become_tools_of_langchain(world: World, other: Other) -> None:
    converted = other("schemas", world.location)
    assert converted == {name: name for name in converted}
    assert "multiplex_tools" in converted


def test_the_client_half_on_a_session_of_mcp_1(world: World, other: Other) -> None:
    assert other("session", world.location, call=(PREPARE, FROM_LOCKED)) == {
        "outcome": "completed",
        "steps": [[1, PREPARE], [2, HANDOFF]],
        "of": "mcp.client.session",
    }
    assert [event["chain_level"] for event in world.events()] == [1, 2]


def test_the_openai_agents_sdk_on_mcp_1(world: World, other: Other) -> None:
    answer = other("openai_agents", world.location, call=(PREPARE, FROM_LOCKED))
    assert answer["told"][0] == LOCKED_TEXT
    assert answer["of"] == "mcp.types"


def test_the_lines_of_the_page_run(world: World, other: Other) -> None:
    """The server runs in this environment, and nothing of it is on the other's path."""
    assert isinstance(world.location, Path)
    with http_server(world.location.parent, BANKING_SECRET=SECRET) as server:
        for adapter, more in (
            ("langchain", {"names": {"url": server.url, "token": server.token()}}),
            ("mcp_1", {"session": True}),
        ):
            call = (PREPARE, FROM_LOCKED)
            told = other("usage", world.location, lines=lines_of(adapter), call=call, **more)
            assert told[0] == LOCKED_TEXT
            assert "Your reference is ho_" in told[1]


def test_a_step_that_fails_is_told(anything: str, other: Other) -> None:
    answer, _ = other.agent(anything, ("stumble", {"then": "fail"}), always=True)
    assert answer["told"].index("It has stumbled.") < answer["told"].index("It did not work.")


def test_what_cannot_consent_is_refused_at_once(anything: str, other: Other) -> None:
    with pytest.raises(RuntimeError, match=r"TypeError.*consent must be an object with"):
        other.agent(anything, ("tidy_up", {}), chaining={"consent": True})


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(PYTHON), "-m", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
    )


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("banking_server", ()),
        ("banking_server", ("call", "anything")),
        ("banking_server", ("handoffs",)),
        ("banking_server.proxy", ("--", "some-server")),
    ],
)
def test_what_needs_mcp_2_says_so(module: str, arguments: tuple[str, ...]) -> None:
    ended = command(module, *arguments)
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    name = "tool-chaining-proxy" if module.endswith("proxy") else "banking-server"
    assert line.startswith(f"{name}: this needs mcp 2.3, and mcp 1.")
    assert "pip install 'mcp>=2.3,<2.4'" in line


def test_the_suite_does_not_need_it() -> None:
    ended = command("banking_server.conformance", "list")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_without_the_adapter_the_proxy_follows(
    world: World, other: Other, tmp_path: Path, over: str
) -> None:
    bank = ("--", *bank_command("--database", str(world.location)))
    call = (PREPARE, FROM_LOCKED)
    if over == "stdio":
        answer, model = other.agent((*PROXY, *bank), call, follow=False)
    else:
        with proxy_over_http(tmp_path, *bank) as proxy:
            answer, model = other.agent(proxy.url, call, follow=False)
    assert [event["tool"] for event in world.events()] == [PREPARE, HANDOFF]
    assert world.sql("SELECT choice FROM handoff") == [("callback",)]
    assert answer["told"].index(LOCKED_TEXT) < answer["told"].index("Your reference is ho_")
    assert len(model.requests) == 2
