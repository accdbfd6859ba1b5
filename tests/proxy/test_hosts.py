"""Hosts and frameworks of the page's table, each with the entry or the command that it is given.

Where one runs without a window, a scripted model makes the first call of the story, and is told
what came of it. The hosts are installed by `npm ci --prefix tests/node/hosts`, and the frameworks,
which cannot share an environment with the rest, by

    python -m venv frameworks
    frameworks/bin/pip install -r tests/proxy/requirements-frameworks.txt

named to these tests by `FRAMEWORKS_PYTHON=frameworks/bin/python`. Those that have an adapter are
tested in `tests/adapters`, the Inspector in `tests/views`. That all entries name the same command
is tested in `tests/cli/test_install.py`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from ..conformance.node_project import HOSTS, missing, node
from ..kit.command import PATIENCE, run
from ..kit.model import Reply, Script, scripted_model
from ..kit.pages import PAGES, block
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, PREPARE

PAGE = "specs/proxy/README.md"
REQUEST = "Move 250 from Primary Checking."
PROGRAMS = Path(__file__).with_name("in_frameworks.py")
PYTHON = os.environ.get("FRAMEWORKS_PYTHON")
NO_FRAMEWORKS = None if PYTHON else f"FRAMEWORKS_PYTHON is not set: see {Path(__file__).name}"
CLAUDE, CODEX = "@anthropic-ai/claude-code", "@openai/codex"
QWEN, OPENCODE = "@qwen-code/qwen-code", "opencode-ai"
IN_NODE = ("vercel", "mastra")


def command_of(row: str) -> str:
    """Return the command that a row of the page's table names."""
    [command] = re.findall(rf"^\| {row}[^|]*\| `([^`]+)`", PAGES[PAGE].text, re.MULTILINE)
    return str(command)


def entry(host: str) -> str:
    """Return what `install` prints for a host."""
    return run("install", host, "--customer", "CUST001").stdout


def execute(home: Path, *command: str, **variables: str) -> None:
    """Run a command that has to succeed, with nothing of this environment but its commands."""
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        env={"HOME": str(home), "PATH": commands, **variables},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout


async def shown(home: Path, command: str, *arguments: str) -> dict[str, Any]:
    """Return what a host shows its model that starts this server: structured content alone."""
    start = {"HOME": str(home), "PATH": "/nowhere"}
    server = StdioServerParameters(command=command, args=list(arguments), env=start)
    async with Client(server, mode="legacy") as client:
        result = await client.call_tool(PREPARE, FROM_LOCKED)
    return result.structured_content or {}


def claude_code(home: Path, url: str) -> None:
    claude = (str(node()), str(HOSTS / "node_modules" / CLAUDE / "cli-wrapper.cjs"))
    execute(home, *claude, *shlex.split(entry("claude-code"))[1:])
    variables = {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # It waits 5 seconds for its servers, in which a busy machine starts none.
        "MCP_CONNECT_TIMEOUT_MS": str(1000 * PATIENCE),
    }
    execute(home, *claude, "-p", REQUEST, "--allowedTools", f"mcp__bank__{PREPARE}", **variables)


def codex(home: Path, url: str) -> None:
    provider = f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}"'
    model = 'model = "scripted"\nmodel_provider = "scripted"'
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f"{model}\n{provider}\n{entry('codex')}")
    script = HOSTS / "node_modules" / CODEX / "bin" / "codex.js"
    execute(home, str(node()), str(script), "exec", "--skip-git-repo-check", REQUEST)


def framework(name: str, home: Path, url: str) -> None:
    """Run the framework's program with the command that its row names."""
    of_the_row = command_of("Google ADK, LlamaIndex")
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "1"}
    execute(home, str(PYTHON), str(PROGRAMS), name, url, of_the_row, **quiet)


def in_node(name: str, home: Path, url: str, command: str | None = None) -> None:
    """Run the framework's program with a command, by default the one that its row names."""
    (home / "node_modules").symlink_to(HOSTS / "node_modules")
    program = shutil.copy(PROGRAMS.with_name("in_node.mjs"), home)
    command = command or command_of("Google ADK, LlamaIndex")
    execute(home, str(node()), program, name, url, command)


def qwen_code(home: Path, url: str) -> None:
    command, *arguments = command_of("Google ADK, LlamaIndex").split()
    bank = {"command": command, "args": arguments, "trust": True}
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps({"mcpServers": {"bank": bank}}))
    script = HOSTS / "node_modules" / QWEN / "cli.js"
    model = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url, "OPENAI_MODEL": "scripted"}
    execute(home, str(node()), str(script), "-p", REQUEST, "--yolo", **model)


def open_code(home: Path, url: str) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    command = command_of("Google ADK, LlamaIndex").split()
    configuration = {
        "model": "scripted/scripted",
        "provider": {"scripted": provider},
        "mcp": {"bank": {"type": "local", "command": command, "timeout": 1000 * PATIENCE}},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(configuration))
    [program] = (HOSTS / "node_modules").glob("opencode-linux-*64/bin/opencode")
    execute(home, str(program), "run", REQUEST, OPENCODE_DISABLE_MODELS_FETCH="1")


def story(tool: str) -> Script:
    """Return a model that makes one call of a tool, however the host calls it, and ends."""
    called: list[str] = []

    def reply(request: dict[str, Any]) -> Reply:
        if called or not request.get("tools"):  # Some hosts ask for a title, too.
            return Reply("Done.")
        called.append(tool)
        return Reply(calls=[(tool, FROM_LOCKED)])

    return reply


def nightly(play: Any, name: str, lacking: str | None) -> Any:
    marks = [pytest.mark.nightly, pytest.mark.needs_program(lacking)]
    return pytest.param(play, marks=marks, id=name)


def is_of_the_handoff(told: str, home: Path) -> None:
    """Assert that the model is told of the handoff, and that the bank has it."""
    assert LOCKED_TEXT in told
    assert "has already run. Do not call it again." in told
    assert "A customer service agent can help you with this." in told
    found = re.search(r"Your reference is (ho_[0-9a-f]+)", told)
    assert found is not None
    assert found[1] in run("handoffs", HOME=str(home)).stdout


@pytest.mark.parametrize(
    "play",
    [
        nightly(claude_code, "Claude Code", missing(CLAUDE, HOSTS)),
        nightly(codex, "Codex", missing(CODEX, HOSTS)),
        nightly(qwen_code, "Qwen Code", missing(QWEN, HOSTS)),
        nightly(open_code, "OpenCode", missing(OPENCODE, HOSTS)),
        *[nightly(partial(in_node, name), name, missing("ai", HOSTS)) for name in IN_NODE],
        *[
            nightly(partial(framework, name), name, NO_FRAMEWORKS)
            for name in ("agent_framework", "google_adk", "llama_index")
        ],
    ],
)
def test_the_host_s_model_receives_the_handoff(play: Any, tmp_path: Path) -> None:
    # Qwen Code does not list the tools of servers, and finds them by their whole names.
    tool = f"mcp__bank__{PREPARE}" if play is qwen_code else PREPARE
    with scripted_model(story(tool)) as model:
        play(tmp_path, model.url)
    assert len([request for request in model.requests if request.get("tools")]) == 2
    is_of_the_handoff(model.told, tmp_path)


@pytest.mark.anyio
async def test_the_configuration_for_most_hosts(tmp_path: Path) -> None:
    """The entry of Claude Desktop is the configuration by hand with full paths."""
    by_hand, bank = [
        json.loads(configuration)["mcpServers"]["bank"]
        for configuration in (block(PAGE, "hosts", "json"), entry("claude-desktop"))
    ]
    command = [bank["command"], *bank["args"]]
    assert [Path(word).name for word in command] == [by_hand["command"], *by_hand["args"]]
    is_of_the_handoff(json.dumps(await shown(tmp_path, *command)), tmp_path)
    # What the proxy starts is what a host starts without the proxy. `tests/tools/test_locked.py`
    # has what that shows: the next step is up to the model.
    assert command_of("any host, without the proxy") == " ".join(by_hand["args"][-3:])
