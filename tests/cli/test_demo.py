"""`banking-server demo` in a terminal; `tests/test_readme.py` has what it prints elsewhere."""

import re
from pathlib import Path

from banking_server.cli.arguments import read_arguments
from banking_server.cli.demo import PLAN

from ..kit.command import Cli


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
    assert read_arguments(f"@{plan}") == PLAN
