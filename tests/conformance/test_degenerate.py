"""Targets that are not MCP servers or clients: they earn no success, and the exit code says so."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.target.channel import Target
from banking_server.conformance.target.connection import Profile, connect
from banking_server.conformance.target.era import Era

from ..kit.serving import running
from .support import SHOP, UNTESTABLE, suite

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


@contextmanager
def answering(status: int, body: bytes, kind: str = "application/json") -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(http) as origin:
        yield f"{origin}/mcp"


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
    with answering(status, body, kind) as url:
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
import json, os, sys, time, urllib.request
context = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
params = {"name": context["tool"], "arguments": context["arguments"], "_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
headers = {"content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[-1], body, headers)).read()
"""


@pytest.mark.parametrize(
    ("then", "code"),
    [("", 1), ("time.sleep(60)", 3)],
    ids=["stops", "hangs"],
)
def test_a_client_that_makes_the_first_call_only(tmp_path: Path, then: str, code: int) -> None:
    script = tmp_path / "client.py"
    script.write_text(FIRST_CALL + then)
    run = suite(
        *("client", "--timeout", "1", "--spec-version", "2026-07-28", "--json"),
        *("--case", "exact-arguments", "--case", "unknown-tool", "--case", "chain-of-three"),
        *("--check", "tool-chaining-client-follows-directive"),
        *("--check", "tool-chaining-client-unknown-tool-not-called"),
        *("--check", "tool-chaining-client-no-directive-no-call"),
        *("--", sys.executable, script),
    )
    assert run.code == code
    assert "SUCCESS" not in run.statuses


def test_a_request_that_was_too_fast_is_sent_again_when_the_server_says() -> None:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(message["method"])
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "slow"}}
            result = {"supportedVersions": [Era.MODERN], "capabilities": {}}
            right = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            body = json.dumps(error if len(seen) < 3 else right).encode()
            self.send_response(429 if len(seen) < 3 else 200)
            if len(seen) < 3:
                self.send_header("retry-after", "0")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as origin:
        connect(Target(url=f"{origin}/mcp", timeout=15), Era.MODERN, Profile()).close()
    assert seen == ["server/discover"] * 3
