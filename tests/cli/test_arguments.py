"""`--arguments` of `call`: JSON, a file or standard input, and the plan that the demo shows."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from banking_server.cli.arguments import read_arguments
from banking_server.cli.demo import PLAN

from ..kit.command import Cli
from .support import one_line


def test_an_object_from_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('\ufeff{"a": 1}\n', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}')))
    for source in (json.dumps({"a": 1}), f"@{file}", "-"):
        assert read_arguments(source) == {"a": 1}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "is not JSON: Expecting property name"),
        (b"[]", "must be a JSON object"),
        (b'{"amount": NaN}', "is not JSON: NaN is not a JSON number."),
        (b"[" * 100_000, "is nested too deeply."),
        (b'{"a": "\xff"}', "is not UTF-8."),
    ],
    ids=range(5),
)
def test_what_cannot_be_read_is_one_line(cli: Cli, tmp_path: Path, data: bytes, told: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(data)
    refused = one_line(cli("call", "tool", "--arguments", f"@{file}"))
    assert f"'{file}' {told}" in refused
    assert "Cannot read" in one_line(cli("call", "tool", "--arguments", f"@{tmp_path}"))


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
