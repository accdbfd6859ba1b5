"""Who floods the suite is left at the time limit, and little of what was sent is held."""

import re
import subprocess
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from .support import posting

HELD = 64 * 1024 * 1024
"""Bytes that the suite may hold of what a server floods it with."""

NOTE = '{"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "%s"}}'
LOOP = "import sys\nwrite = sys.stdout.buffer.write\nwhile True: write(%s)"
FLOODS = {
    "notifications": (
        LOOP % repr((NOTE % ("x" * 50) + "\n").encode() * 1000),
        r"no reply to server/discover within 1 s, but the server sent \d+ other messages, about "
        r"\d+ KiB; let it answer before it sends more, or give it more time \(--timeout\)",
    ),
    "no-line-end": (
        LOOP % repr(b"x" * 5000),
        "the server sent a message of more than 4 MiB, which the suite does not read",
    ),
}

MEASURED = """
import atexit, re, sys
from banking_server.conformance.cli import main

def tell():
    with open("/proc/self/status") as status:
        print(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1], file=sys.stderr)

atexit.register(tell)
main()
"""

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(),
        reason="only Linux tells how much memory a process had",
    ),
]


def peak(*arguments: str) -> tuple[int, int, str]:
    """Run the suite as a process; return the most memory that it had in bytes, its exit code, and
    its verdict.
    """
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return int(ended.stderr.split()[-1]) * 1024, ended.returncode, ended.stdout.splitlines()[-1]


SERVER = ("server", "--timeout", "1", "--spec-version", "2026-07-28")


@pytest.fixture(scope="module")
def quiet() -> int:
    """What a run takes against a server that says nothing."""
    return peak(*SERVER, "--", sys.executable, "-c", "import time; time.sleep(0.2)")[0]


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_on_standard_output_is_not_held(flood: str, quiet: int) -> None:
    code, said = FLOODS[flood]
    size, ended, verdict = peak(*SERVER, "--", sys.executable, "-c", code)
    assert ended == 3
    assert re.search(said, verdict), verdict
    assert size - quiet < HELD


@pytest.mark.parametrize(
    ("kind", "chunk"),
    [
        ("text/event-stream", f"data: {NOTE % ('x' * 500)}\n\n".encode() * 100),
        ("application/json", b"[" * 5000),
    ],
    ids=["events", "one body"],
)
def test_a_flood_over_http_is_not_held(kind: str, chunk: bytes, quiet: int) -> None:
    def answer(handler: BaseHTTPRequestHandler, message: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.end_headers()
        with suppress(OSError):  # The suite gives up.
            while True:
                handler.wfile.write(chunk)

    with posting(answer) as url:
        size, code, _ = peak(*SERVER, "--url", url)
    assert code == 3
    assert size - quiet < HELD


FLOODS_THE_MOCK = """
import http.client, json, sys
from urllib.parse import urlsplit
body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"text": "x" * 200_000}})
for _ in range(450):
    connection = http.client.HTTPConnection(urlsplit(sys.argv[-1]).netloc)
    connection.request("POST", "/mcp", body, {"content-type": "application/json"})
    connection.getresponse().read()
    connection.close()
sys.exit(1)
"""


def test_what_a_client_sends_without_end_is_not_held(quiet: int) -> None:
    arguments = ("client", "--spec-version", "2026-07-28", "--case", "error-result")
    size, code, verdict = peak(*arguments, "--", sys.executable, "-c", FLOODS_THE_MOCK)
    assert code == 3
    assert "the client sent more than the 8 MiB that the suite keeps of one run" in verdict
    assert size - quiet < HELD
