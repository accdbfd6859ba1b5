"""The official MCP conformance suite's portable subset, against this project's HTTP server.

Most of the official scenarios need fixture tools of their own; these are the ones that any server
should pass. They need Node 22 and what `tests/node/package.json` names.
"""

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.server.http import http_app
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.tokens import Tokens

from ..kit.bank import copy_of, settings
from ..kit.serving import served
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


@pytest.fixture(scope="module")
def url(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bank. Each request gets the bearer token, which the official suite cannot send."""
    chosen = settings(copy_of(filled, tmp_path_factory.mktemp("bank")))
    tokens, app = Tokens.of(chosen, load_keys(chosen)), http_app(chosen)
    scopes = ["bank:read", "bank:transfer"]
    token = tokens.mint("CUST001", scopes, now=utc_now(), lifetime=timedelta(hours=1))

    def signing_in(inner: ASGIApp) -> ASGIApp:
        async def signed_in(scope: Scope, receive: Receive, send: Send) -> None:
            header = (b"authorization", f"Bearer {token}".encode())
            await inner({**scope, "headers": [*scope.get("headers", ()), header]}, receive, send)

        return signed_in

    app.add_middleware(signing_in)
    with served(app) as served_at:
        yield served_at


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
