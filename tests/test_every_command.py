"""Every command of every program, in each environment that somebody met: no traceback, the right
exit code, and one line that names the problem."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .kit.command import PATIENCE, environment

pytestmark = pytest.mark.nightly

BANK: Final = (sys.executable, "-m", "banking_server")
PROXY: Final = (sys.executable, "-m", "tool_chaining_proxy")
SUITE: Final = (sys.executable, "-m", "tool_chaining_conformance")
SERVER: Final = ("--", *BANK)
RULES: Final = ("--rules", "rules.toml")

COMMANDS: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "banking-server": (BANK, 0),
    **{
        f"banking-server {words}": ((*BANK, *words.split()), 0)
        for words in (
            *("--help", "doctor --json", "handoffs", "approvals", "codes", "audit", "settle"),
            *("token --customer CUST001", "database check", "install cursor", "demo"),
            *("call list_accounts", "call list_accounts --json", "tools"),
        )
    },
    "banking-server chat": ((*BANK, "chat", "--prompt", "Hi"), 2),  # No model is set.
    "proxy --help": ((*PROXY, "--help"), 0),
    "proxy": ((*PROXY, *SERVER), 0),
    "proxy --check": ((*PROXY, *RULES, "--check", *SERVER), 1),
    "proxy --try": ((*PROXY, *RULES, "--try", "result.json"), 0),
    "proxy --draft": ((*PROXY, "--draft", "recording.jsonl"), 0),
    "suite --help": ((*SUITE, "--help"), 0),
    "suite scenario": ((*SUITE, "scenario", *SERVER), 0),
    "suite program": ((*SUITE, "program"), 0),
}
"""Each command, and its exit code in an ordinary environment."""

ENVIRONMENTS: Final[dict[str, dict[str, str | None]]] = {
    "no HOME": {"HOME": None},
    "no USER": {"USER": None, "LOGNAME": None},
    "HOME is read-only": {"HOME": "/proc", "BANKING_DATABASE": None},
    "PYTHONOPTIMIZE=2": {"PYTHONOPTIMIZE": "2"},
    "ASCII": {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    "cp1252": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    "ALL_PROXY": {"ALL_PROXY": "socks://127.0.0.1:1"},
    "all_proxy": {"all_proxy": "socks5://127.0.0.1:1"},
    "HTTP_PROXY": {"HTTP_PROXY": "http://127.0.0.1:bad"},
    "HTTPS_PROXY": {"HTTPS_PROXY": "http://127.0.0.1:bad"},
    "a closed pipe": {},
    "a full disk": {},
    "no standard output": {},
}
NAMED: Final = {
    "HOME is read-only": ("database",),
    "PYTHONOPTIMIZE=2": ("PYTHONOPTIMIZE=2", "docstring"),
    "a full disk": ("No space left on device",),
}
"""What a command says that fails in one of these environments only."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    rule = "[[rule]]\nafter = 'list_accounts'\nthen = 'unknown'\n"
    (folder / "rules.toml").write_text(rule)
    (folder / "result.json").write_text('{"tool": "list_accounts", "content": []}')
    (folder / "recording.jsonl").write_text("")
    made = ended((*BANK, "database", "create"), folder, "ordinary")
    assert made.returncode == 0, made.stderr
    return folder


def ended(
    words: tuple[str, ...], folder: Path, name: str, **variables: str | None
) -> subprocess.CompletedProcess[str]:
    """Run a command with the database and files of a folder, in an environment."""
    settings = {"BANKING_DATABASE": str(folder / "bank.db"), **variables}
    given = environment(**{name: value for name, value in settings.items() if value is not None})
    for variable, value in settings.items():
        if value is None:
            given.pop(variable, None)
    if name == "no standard output":
        words = ("sh", "-c", 'exec "$@" >&-', "sh", *words)
    for output in _outputs(name):
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=given,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
        )
    raise AssertionError


def _outputs(name: str) -> Iterator[Any]:
    """Yield what standard output is: a pipe that is read, one that nobody reads, or a full disk."""
    if name == "a full disk":
        with open("/dev/full", "w") as full:
            yield full
    elif name == "a closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w") as nobody:
            yield nobody
    else:
        yield subprocess.PIPE


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_command_ends_well_or_names_the_problem(folder: Path, name: str) -> None:
    for words, (command, usual) in COMMANDS.items():
        found = ended(command, folder, name, **ENVIRONMENTS[name])
        said = f"{words}: {found.stdout or ''}{found.stderr}"
        assert "Traceback" not in said
        if found.returncode != usual:
            assert name in NAMED, said
            assert found.returncode in (1, 2, 3), said
            assert any(part in said for part in NAMED[name]), said
            own = [line for line in found.stderr.splitlines() if "tool-chaining" in line[:16]]
            assert len(own) <= 1, said
