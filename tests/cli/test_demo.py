"""`banking-server demo` in a terminal; `tests/test_readme.py` has what it prints elsewhere."""

import json
import re
from pathlib import Path

import pytest

from banking_server.cli.arguments import read_arguments
from banking_server.cli.demo import PLAN

from ..kit.command import Cli, command
from ..kit.terminal import Terminal


def test_the_request_that_the_demo_shows_is_the_one_that_it_sends(cli: Cli, tmp_path: Path) -> None:
    shown = cli("demo", "--multiplex")
    assert (shown.code, shown.err) == (0, "")
    assert "Its memo is 'Everyday Checking-dup'." in shown.out
    assert re.findall(r"(?m)^\d\. (\w+): done$", shown.out) == [
        "list_accounts",
        "get_account_statement",
        "prepare_money_transfer",
    ]
    assert "multiplex_tools  completed" in shown.out
    plan = tmp_path / "plan.json"
    plan.write_text(shown.out.split("==\n")[2].split("\n\n")[0], encoding="utf-8")
    assert read_arguments(f"@{plan}", "multiplex_tools") == PLAN


@pytest.mark.nightly
@pytest.mark.parametrize("story", [(), ("--multiplex",)])
def test_on_a_narrow_terminal_lines_wrap_and_nothing_is_cut(story: tuple[str, ...]) -> None:
    terminal = Terminal(command("demo", *story), columns=40)
    assert terminal.finish() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.screen)
    assert "\x1b[" in terminal.screen
    if story:
        # What is to be copied is whole, and the terminal's to wrap.
        begun = plain[plain.index("{") :]
        assert json.JSONDecoder().raw_decode(begun)[0] == PLAN
        return
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 40
    assert "You'll need to speak with a customer service agent" in " ".join(plain.split())
