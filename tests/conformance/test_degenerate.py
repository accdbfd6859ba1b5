"""Targets that are not MCP servers or clients: they earn no success, and the exit code says so."""

import json
import sys
from pathlib import Path

import pytest

from banking_server.conformance.target.era import Era

from .support import SHOP, UNTESTABLE, posting, reply, suite

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
FLOOD = "while True: print('hello')"
EMPTY = (
    "import sys, json\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': m.get('id'), 'result': {}}), flush=True)"
)


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/false"],
        ["/no/such/program"],
        ["sleep", "60"],
        [sys.executable, "-c", ECHO],
        [sys.executable, "-c", FLOOD],
        [sys.executable, "-c", EMPTY],
    ],
    ids=["false", "absent", "hangs", "echoes", "floods", "empty-results"],
)
def test_a_program_that_is_not_a_server(command: list[str]) -> None:
    arguments = ("server", "--timeout", "0.3", "--spec-version", Era.MODERN, "--scenario", SHOP)
    run = suite(*arguments, "--json", "--", *command)
    assert run.code == 3
    assert run.report["verdict"] == "error"
    assert run.statuses == {UNTESTABLE}


def test_a_server_that_dies_is_told_with_what_it_wrote_last() -> None:
    code = (
        "import sys; print('Loading orders.', file=sys.stderr); sys.exit('No database: orders.db')"
    )
    run = suite("server", "--spec-version", Era.MODERN, "--", sys.executable, "-c", code)
    assert run.code == 3
    assert (
        "the server exited with code 1 instead of answering server/discover; what it wrote last to "
        "its standard error: Loading orders. | No database: orders.db" in run.output
    )


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
    with posting(lambda handler, message: reply(handler, body, kind, status)) as url:
        run = suite("server", "--url", url, "--scenario", SHOP, "--json")
    assert run.code == 3
    assert run.statuses == {UNTESTABLE}


@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/sh", "-c", "sleep 60"]])
def test_a_program_that_is_not_a_client(command: list[str]) -> None:
    run = suite("client", "--timeout", "0.5", "--json", "--", *command)
    assert run.code == 3
    assert run.report["verdict"] == "error"
    assert run.statuses == {UNTESTABLE}


FIRST_CALL = """
import json, os, sys, urllib.request
context = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
params = {"name": context["tool"], "arguments": context["arguments"], "_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
headers = {"content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[-1], body, headers)).read()
"""


def test_a_client_that_makes_the_first_call_only(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(FIRST_CALL)
    run = suite(
        *("client", "--timeout", "1", "--spec-version", "2026-07-28", "--json"),
        *("--scenario", "follow/exact-arguments", "--scenario", "refusals/unknown-tool"),
        *("--scenario", "chain/chain-of-three"),
        *("--check", "tool-chaining-client-follows-directive"),
        *("--check", "tool-chaining-client-unknown-tool-not-called"),
        *("--check", "tool-chaining-client-ignores-directive-elsewhere"),
        *("--", sys.executable, script),
    )
    assert run.code == 1
    assert "it was not chosen" in {each["reason"] for each in run.report["not_exercised"]}
    assert "SUCCESS" not in run.statuses
