"""The MCP Inspector, unmodified, as a program of the command line, sees the locked account."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..conformance.node_project import MODULES, missing, node
from ..kit.command import PATIENCE, command, environment

INSPECTOR = "@modelcontextprotocol/inspector"

pytestmark = pytest.mark.needs_program(missing(INSPECTOR))

LOCKED = ("fromAccountId=acc_checking_001", "toAccountId=acc_savings_001", "amount=25.5")


def inspect(server: list[str], method: str, *options: str) -> dict[str, Any]:
    """Return what the Inspector prints of a server's answer."""
    program = node()
    assert program is not None
    inspector = MODULES / INSPECTOR / "clients" / "cli" / "build" / "index.js"
    ended = subprocess.run(
        [program, str(inspector), *server, "--method", method, *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
    )
    assert ended.returncode == 0, ended
    printed = json.loads(ended.stdout)
    assert isinstance(printed, dict)
    return printed


@pytest.fixture
def bank(tmp_path: Path) -> list[str]:
    return command("--customer", "CUST001", "--database", str(tmp_path / "bank.db"))


def test_it_sees_the_handoff(bank: list[str]) -> None:
    arguments = [part for argument in LOCKED for part in ("--tool-arg", argument)]
    result = inspect(bank, "tools/call", "--tool-name", "prepare_money_transfer", *arguments)
    assert result["structuredContent"]["status"] == "account_locked"
    assert result["_meta"]["nextTool"]["tool"] == "request_agent_handoff"
