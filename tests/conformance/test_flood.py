"""A server that floods the suite is left at the time limit, and little of what it sent is held."""

import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ..kit.serving import running

MIB = 1024 * 1024
HELD = 64 * MIB
"""Bytes that the suite may hold of what a server floods it with."""

LOOP = "import sys\nwrite = sys.stdout.buffer.write\nwhile True: write(%s)"
NOTE = '{"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "%s"}}'
GREETING = """
import json, sys
m = json.loads(sys.stdin.readline())
r = {"supportedVersions": ["2026-07-28"], "protocolVersion": "2025-11-25", "capabilities": {}}
print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
PAGES = (
    GREETING
    + """
tools = [{"name": f"t{n}", "inputSchema": {"type": "object"}, "x": "y" * 1000} for n in range(3000)]
for line in sys.stdin:
    m = json.loads(line)
    r = {"tools": tools, "nextCursor": str(m["id"])}
    if "id" in m: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
)
FLOODS = {
    "notifications": LOOP % repr((NOTE % ("x" * 50) + "\n").encode() * 1000),
    "long-notifications": LOOP % f"{(NOTE % 'y').encode()!r}.replace(b'y', b'x' * 10**6) + b'\\n'",
    "no-line-end": LOOP % repr(b"x" * 5000),
    "questions": LOOP % repr(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 1000),
    "lists-in-one-line": LOOP % "b'[' + b'[],' * 10**6 + b'[]]\\n'",
    "pages": PAGES,
}


LESS = "which the suite does not read; let it send less at once, such as fewer tools on a page"
MANY = (
    r"no reply to server/discover within 1 s, but the server sent \d+ other messages, about \d+ "
    r"KiB; let it answer before it sends more, or give it more time \(--timeout\)"
)
SAID = {
    "notifications": MANY,
    "events": MANY,
    "no-line-end": f"the server sent a message of more than 4 MiB, {LESS}",
    "one-body": f"the server sent a message of more than 4 MiB, {LESS}",
    "lists-in-one-line": f"the server sent a message of more than 16 MiB once it is read, {LESS}",
}
"""What the verdict says of a flood: who sent how much of what, and what to do."""


MEASURED = """
import atexit, re, sys
from banking_server.conformance.cli import main

def tell():
    with open("/proc/self/status") as status:
        print(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1], file=sys.stderr)

atexit.register(tell)
main()
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux tells how much memory a process had"
)


def peak(*arguments: str) -> tuple[int, int, str]:
    """Run the suite as a process; return the most memory that it had in bytes, its exit code, and
    its verdict.

    The server has one second for each reply.
    """
    options = ["server", "--timeout", "1", "--spec-version", "2026-07-28"]
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *options, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return int(ended.stderr.split()[-1]) * 1024, ended.returncode, ended.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def quiet() -> int:
    """What a run takes against a server that says nothing."""
    return peak("--", sys.executable, "-c", "import time; time.sleep(0.2)")[0]


@pytest.mark.parametrize(
    "flood",
    [pytest.param(each, marks=pytest.mark.nightly if n else ()) for n, each in enumerate(FLOODS)],
)
def test_a_flood_on_standard_output_is_not_held(flood: str, quiet: int) -> None:
    size, code, verdict = peak("--", sys.executable, "-c", FLOODS[flood])
    assert code in (3, 4)
    assert re.search(SAID.get(flood, ""), verdict), verdict
    assert size - quiet < HELD


EVENT = f"data: {NOTE % ('x' * 500)}\n\n".encode()
BODIES = {
    "events": ("text/event-stream", EVENT * 100),
    "one-body": ("application/json", b"[" * 5000),
    "compressed": ("application/json", b"\x1f\x8b" * 5000),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_flood_over_http_is_not_held(body: str, quiet: int) -> None:
    kind, chunk = BODIES[body]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", kind)
            if body == "compressed":
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(chunk)
            except OSError:
                pass  # The suite has given up.

        def log_message(self, *arguments: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    with running(http) as origin:
        size, code, verdict = peak("--url", f"{origin}/mcp")
    assert code == 3
    assert re.search(SAID.get(body, ""), verdict), verdict
    assert size - quiet < HELD
