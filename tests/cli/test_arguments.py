"""`--arguments` of `call`: JSON, a file or standard input; a mistake is one line."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from banking_server.cli.arguments import MAX_SIZE, read_arguments

from ..kit.command import Cli
from .support import one_line

REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "tool", "arguments": {"a": 1}, "_meta": {"progressToken": 1}},
}


def typed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"a": 1}, {"a": 1}),
        (REQUEST, {"a": 1}),
        ({**REQUEST, "params": {"name": "tool"}}, {}),
        # Arguments that only look like a request.
        ({"method": "tools/call"}, {"method": "tools/call"}),
    ],
)
def test_an_object_or_a_request_from_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: Any, arguments: dict[str, Any]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(f"\ufeff{json.dumps(given)}\n", encoding="utf-8")
    typed(monkeypatch, json.dumps(given).encode())
    for source in (json.dumps(given), f"@{file}", "-"):
        assert read_arguments(source, "tool") == arguments


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "is not JSON: Expecting property name"),
        (b"[]", "must be a JSON object"),
        (b'{"days": 7, "days": 8}', "is not JSON: a name in it is there twice."),
        (b'{"amount": NaN}', "is not JSON: NaN is no number."),
        (b"[" * 100_000, "is nested too deeply."),
        (b'{"a": "\xff"}', "is not UTF-8."),
        (b" " * (MAX_SIZE + 1), "has more than 4,194,304 bytes."),
        (
            json.dumps({**REQUEST, "params": {"name": "\x1b[2Jother"}}).encode(),
            'is a request to call "\\u001b[2Jother", and not tool.',
        ),
    ],
    ids=range(8),
)
def test_what_cannot_be_taken_is_one_line(cli: Cli, tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(data)
    told = one_line(cli("call", "tool", "--arguments", f"@{file}"))
    assert said in told
    assert f"'{file}'" in told
    assert "Cannot read" in one_line(cli("call", "tool", "--arguments", f"@{tmp_path}"))
