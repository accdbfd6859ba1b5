"""Every command that a page shows is run as it stands there, or the page says what it needs."""

import os
import re
import shlex
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

from banking_server.cli import app as bank
from tool_chaining_conformance.cli import app as suite
from tool_chaining_proxy.cli import app as proxy

from .conformance.support import suite as run_suite
from .kit.command import Cli, environment
from .kit.pages import PAGES, ROOT, Block
from .kit.servers import free_port

NEEDS = re.compile(r"needs (a host|the network|a model|Node)\b")
"""The comment above a block that no test can run."""


def command_of(line: str) -> str:
    """Return a line without its comment."""
    return re.sub(r"\s+# .*", "", line)


def commands(of: Block) -> list[str]:
    return [command_of(line) for line in of.text.splitlines() if line]


SHOWN = {
    name: shown
    for name, page in PAGES.items()
    if (shown := [one for one in page.blocks if one.language == "sh"])
}

CALL = (
    "banking-server call prepare_money_transfer "
    """--arguments '{"fromAccountId": "acc_checking_001", "amount": 250}'"""
)

ELSEWHERE = {
    CALL: "tests/cli/test_client.py",
    "banking-server handoffs": "tests/cli/test_client.py",
    "tool-chaining-proxy --trust-hints -- banking-server --customer CUST001": (
        "tests/proxy/test_hosts.py"
    ),
    "tool-chaining-proxy --url http://127.0.0.1:8000/mcp": "tests/proxy/test_suites.py",
    "tool-chaining-proxy --http --port 9000 -- banking-server": "tests/proxy/test_http.py",
    "banking-server serve --http": "tests/server/test_http.py",
    "export MCP_TOKEN=$(banking-server token --customer CUST001)": "tests/server/test_http.py",
    "banking-server call list_accounts --url http://127.0.0.1:8000/mcp": (
        "tests/server/test_http.py"
    ),
    "banking-server demo --multiplex": "tests/cli/test_arguments.py",
    "banking-server call multiplex_tools --arguments @plan.json": (
        "tests/multiplex/test_references.py"
    ),
    (
        "pytest -p tool_chaining_conformance.pytest_plugin "
        '--chaining-server "python orders.py" --chaining-scenario orders.yaml'
    ): "tests/conformance/test_pytest_plugin.py",
    "tool-chaining-conformance client --one-process -- python client_under_test.py": (
        "tests/conformance/test_programs.py"
    ),
}
"""What another test runs, and sees more of."""

SLOW = {
    "tool-chaining-conformance scenario --output orders.yaml -- python orders.py",
    "tool-chaining-conformance server --scenario orders.yaml -- python orders.py",
}
"""What starts the same server as `call cancel_order` does, once more; run with --ci."""

LESS = {
    "server": ("--spec-version", "2026-07-28"),
    "client": ("--spec-version", "2026-07-28", "--scenario", "follow/exact-arguments"),
}
"""How much of the suite is run, whose other tests run the whole of it."""


class Shell:
    """A folder with the examples, which the pages tell a reader to save there."""

    def __init__(self, folder: Path, page: str, cli: Cli, *, slow_ones: bool) -> None:
        self.folder, self.page, self.cli, self._slow_ones = folder, page, cli, slow_ones
        scripts = str(Path(sys.executable).parent)
        self.environment = environment(
            BANKING_DATABASE=str(folder / "bank.db"),
            BANKING_PORT=str(free_port()),
            HOME=str(folder / "home"),
            XDG_DATA_HOME=str(folder / "data-home"),
            PATH=os.pathsep.join([scripts, os.environ["PATH"]]),
        )
        for place in (folder, folder / "specs" / "examples"):
            shutil.copytree(ROOT / "specs" / "examples", place, dirs_exist_ok=True)

    def run(self, command: str) -> None:
        if command in ELSEWHERE or (command in SLOW and not self._slow_ones):
            return
        if written := re.match(r"tool-chaining-conformance \w+ --output (\S+)", command):
            # The reader then completes the file: as it stands there already.
            file = self.folder / written[1]
            ready = file.rename(self.folder / "ready")
            self._run(*shlex.split(command))
            ready.replace(file)
        else:
            self._run(*shlex.split(command))

    def _run(self, program: str, *words: str) -> None:
        """Run a program in this process, for speed."""
        if program == "tool-chaining-conformance":
            words = (words[0], *LESS.get(words[0], ()), *words[1:])
        elif program != "banking-server":
            pytest.fail(f"{self.page}: no test runs {program}; say above the block what it needs")
        with chdir(self.folder), mock.patch.dict(os.environ, self.environment, clear=True):
            ended = self.cli(*words) if program == "banking-server" else run_suite(*words)
        assert ended.code == 0, f"{self.page}: {program} {shlex.join(words)}\n{ended}"


_run_already: set[str] = set()


@pytest.mark.parametrize("page", SHOWN)
def test_the_commands_of_a_page_can_be_run_one_after_another(
    page: str, tmp_path: Path, cli: Cli, request: pytest.FixtureRequest
) -> None:
    to_run = [one for one in SHOWN[page] if not NEEDS.match(one.comment)]
    # The same commands on another page do the same.
    to_run = [one for one in to_run if not _run_already.issuperset(commands(one))]
    slow_ones = request.config.getoption("ci")
    reader = Shell(tmp_path, page, cli, slow_ones=slow_ones)
    for one in to_run:
        for command in commands(one):
            reader.run(command)
            _run_already.add(command)


def test_commands_run_by_another_test_are_on_a_page() -> None:
    shown = {each for blocks in SHOWN.values() for one in blocks for each in commands(one)}
    assert {*ELSEWHERE, *SLOW} <= shown
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())


TREE: dict[str, Any] = {
    "banking-server": typer.main.get_command(bank),
    "tool-chaining-conformance": typer.main.get_command(suite),
    "tool-chaining-proxy": typer.main.get_command(proxy),
}


def checked(line: str) -> str:
    """Return the command of a line, without options and arguments, which are known to it."""
    path, *words = shlex.split(line.replace("…", ""))
    command = TREE[path]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        path, command = f"{path} {words[0]}", command.commands[words.pop(0)]
    options = {option for each in command.params for option in each.opts} | {"--help"}
    given = {word.partition("=")[0] for word in line.split(" -- ")[0].split() if word[:2] == "--"}
    assert given <= options, line
    return path


def test_a_command_in_a_sentence_exists_with_its_options() -> None:
    ours = re.compile(rf"({'|'.join(TREE)})( |$)")
    run: set[str] = set()
    for blocks in SHOWN.values():
        for command in (each for one in blocks for each in commands(one)):
            parts = re.split(r" && |\$\(|\)", command)
            run |= {checked(part) for part in parts if ours.match(part)}
    for page in PAGES.values():
        for part in page.inline:
            if part.type == "code_inline" and ours.match(part.content):
                path = checked(part.content)
                assert page.name != "README.md" or path in {*run, *TREE}, part.content
