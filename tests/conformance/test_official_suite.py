"""The official MCP conformance suite's portable subset, against this project's HTTP server.

Most of the official scenarios need fixture tools of their own; these are the ones that any server
should pass. They need Node 22 and what `tests/node/package.json` names.
"""

import http.client
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ..kit.serving import running
from .bank_process import Bank
from .node_project import MODULES, missing, node

SCENARIOS = [
    *(
        (version, scenario)
        for version in ("2025-06-18", "2025-11-25")
        for scenario in ("server-initialize", "ping", "tools-list", "resources-list")
    ),
    ("2025-11-25", "dns-rebinding-protection"),
    *(
        ("2026-07-28", scenario)
        for scenario in (
            "tools-list",
            "resources-list",
            "dns-rebinding-protection",
            "server-sse-multiple-streams",
            "http-header-validation",
            "input-required-result-unsupported-methods",
            "server-stateless",
        )
    ),
]

BASELINE = """
server:
  # These two ask for a tool of the suite's own, which an arbitrary server does not have.
  - server-stateless:sep-2575-server-rejects-undeclared-capability
  - server-stateless:sep-2575-missing-capability-http-400
  # These two want a tool of the suite's own to change the lists.
  - server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription
  - server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription
"""


PACKAGE = "@modelcontextprotocol/conformance"
pytestmark = pytest.mark.needs_program(missing(PACKAGE))


class TokenProxy(BaseHTTPRequestHandler):
    """Adds the bearer token, which the official suite cannot send, and changes nothing else."""

    protocol_version = "HTTP/1.1"
    target = ""
    token = ""

    def relay(self) -> None:
        where = urlsplit(self.target)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        own = f":{self.server.server_address[1]}"
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                connection.putheader(name, value.replace(own, f":{where.port}"))
        connection.putheader("authorization", f"Bearer {self.token}")
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        while part := response.read1(65536):
            self.wfile.write(part)
            self.wfile.flush()
        self.close_connection = True
        connection.close()

    do_GET = do_POST = do_DELETE = relay

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bank behind a proxy that signs in."""
    with Bank(tmp_path_factory.mktemp("bank")) as bank:
        attributes = {"target": bank.url, "token": bank.token()}
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (TokenProxy,), attributes))
        proxy.daemon_threads = True
        with running(proxy) as origin:
            yield f"{origin}/mcp"


def official(url: str, version: str, scenario: str, folder: Path) -> None:
    """Run one scenario; fails if another check fails than is expected, or one of these passes."""
    options = ["--url", url, "--scenario", scenario, "--spec-version", version]
    if scenario == "server-stateless":
        baseline = folder / "expected.yaml"
        baseline.write_text(BASELINE)
        options += ["--expected-failures", str(baseline)]
    program = MODULES / PACKAGE / "dist" / "index.js"
    command = [str(node()), str(program), "server", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_the_official_suite(url: str, version: str, scenario: str, tmp_path: Path) -> None:
    official(url, version, scenario, tmp_path)
