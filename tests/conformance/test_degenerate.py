"""Targets that are not MCP servers or clients: they earn no success, and the exit code says so."""

import json
import sys
from pathlib import Path

import pytest

from tool_chaining_conformance.target.era import Era

from ..kit.serving import Handler, serving
from .support import SHOP, UNTESTABLE, stdio_server, suite

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
FLOOD = "while True: print('hello')"
NEVER_READS = 'while True: print(\'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\')'
EMPTY = (
    "import sys, json\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': m.get('id'), 'result': {}}), flush=True)"
)


SERVER = ("server", "--timeout", "0.3", "--spec-version", Era.MODERN, "--scenario", SHOP)
CLIENT = ("client", "--timeout", "0.5")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (SERVER, ["/bin/false"]),
        (SERVER, ["/no/such/program"]),
        (SERVER, ["sleep", "60"]),
        (SERVER, [sys.executable, "-c", ECHO]),
        (SERVER, [sys.executable, "-c", FLOOD]),
        (SERVER, [sys.executable, "-c", NEVER_READS]),
        (SERVER, [sys.executable, "-c", EMPTY]),
        (CLIENT, ["/bin/true"]),
        (CLIENT, ["/bin/sh", "-c", "sleep 60"]),
    ],
    ids=[
        "false",
        "absent",
        "hangs",
        "echoes",
        "floods",
        "never-reads",
        *("empty-results", "silent", "hangs-too"),
    ],
)
def test_a_program_that_is_no_target(arguments: tuple[object, ...], command: list[str]) -> None:
    run = suite(*arguments, "--json", "--", *command)
    assert run.code == 3
    assert run.report["verdict"] == "error"
    assert run.statuses == {UNTESTABLE}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, b"oops", "text/plain"),
        (200, b"<html>Welcome</html>", "text/html"),
        (200, b"", "text/event-stream"),
        (200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode(), "application/json"),
        (302, b"", "text/plain"),
    ],
)
def test_a_url_where_something_else_answers(status: int, body: bytes, kind: str) -> None:
    class SomethingElse(Handler):
        def do_POST(self) -> None:
            self.message()
            self.answer(status, body, {"content-type": kind})

    with serving(SomethingElse) as origin:
        run = suite("server", "--url", f"{origin}/mcp", "--scenario", SHOP, "--json")
    assert run.code == 3
    assert run.statuses == {UNTESTABLE}


CRASHES_AT_THE_THIRD_CALL = """
    def call(self, request):
        if self.calls == 2:
            sys.exit(7)
        return super().call(request)
"""


def test_what_a_crash_kept_from_being_examined_is_an_error(tmp_path: Path) -> None:
    arguments = ("server", "--spec-version", Era.MODERN, "--scenario", SHOP, "--json")
    run = suite(*arguments, "--", *stdio_server(tmp_path, CRASHES_AT_THE_THIRD_CALL))
    assert run.code == 3
    assert "ended with exit code 7" in run.report["reason"]
    held = {check["id"] for check in run.report["checks"] if check["status"] == "SUCCESS"}
    assert held
    assert "tool-chaining-server-directive-well-formed" not in held  # Judged once, not to the end.
