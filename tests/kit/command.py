"""The program's commands, as people and CI run them: to their end, with no terminal anywhere."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ANY_SERVER = Path(__file__).with_name("any_server.py")
"""An MCP server that is not the bank."""

START = str(Path(__file__).with_name("start"))
"""What Python finds here when it starts, it runs first."""

PATIENCE = 60
"""Seconds after which something hangs, on however busy a machine."""


def environment(**variables: str) -> dict[str, str]:
    """Return an environment without this machine's settings of the program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BANKING_")}
    # Set by pytest-xdist, they would overrule the width of the terminal that a test opens.
    for name in ("COLUMNS", "LINES"):
        kept.pop(name, None)
    kept["PYTHONPATH"] = os.pathsep.join([START, *(path or os.getcwd() for path in sys.path)])
    return {**kept, **variables}


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def end_with_the_tests() -> None:
    """Let this process, which a test has just forked, end with the tests, even if these are killed.

    For `preexec_fn`. Elsewhere than on Linux, only the end of a test ends what it has started.
    """
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "banking_server", *arguments]


def run(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with no terminal anywhere."""
    return subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env=environment(**variables),
    )


@dataclass
class Ended:
    """What a command left that ran to its end in this process."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]
