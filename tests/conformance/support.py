"""What the tests of the suite share: targets, and runs of the suite against them."""

import contextlib
import io
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from banking_server.conformance import cli
from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.run import run_client
from banking_server.conformance.client.script import ClientScript, load_client_scripts
from banking_server.conformance.report.judgement import Judgement, collapse
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.run import Run
from banking_server.conformance.requirements import checks_of
from banking_server.conformance.server.run import run_server
from banking_server.conformance.server.scenario import ServerScenario, load_server_scenario
from banking_server.conformance.target.channel import Target
from banking_server.conformance.target.era import Era

from ..kit.serving import running
from . import small_client
from .small_server import SmallServer, http_server

HERE = Path(__file__).parent
SHOP = HERE / "shop.yaml"
ONE_STEP = """
name: one
description: One step.
steps:
  - id: order
    call: place_order
    arguments: {sku: chair, quantity: 500}
"""
"""A scenario for that shop, to begin with."""
SERVER_COMMAND = [sys.executable, str(HERE / "small_server.py")]
UNTESTABLE = "UNTESTABLE"

OF_INTERMEDIARIES = {
    "tool-chaining-server-intermediary-renames",
    "tool-chaining-server-intermediary-removes-directive",
    "tool-chaining-server-followed-result-meets-schema",
    "tool-chaining-server-no-directive-across-servers",
}
"""Checks that do not apply to a server with tools of its own."""


@cache
def scripts() -> tuple[ClientScript, ...]:
    return load_client_scripts()


@cache
def scenario_of(kind: type[SmallServer]) -> ServerScenario:
    """Return how a server of this kind is exercised."""
    return load_server_scenario(HERE / kind.scenario)


VECTORS = "directives"
"""The script whose cases are the vectors: a third of all."""


def all_checks(side: Any) -> frozenset[str]:
    return frozenset(check.id for check in checks_of(side))


@contextmanager
def serving(server: Any, required_header: tuple[str, str] | None = None) -> Iterator[str]:
    """Serve over HTTP while the block lasts; gives the URL."""
    http = http_server(server, required_header)
    with running(http) as origin:
        yield f"{origin}/mcp"


def examine_server(
    kind: type[SmallServer] = SmallServer,
    eras: Sequence[Era] = tuple(Era),
    scenarios: Sequence[ServerScenario] | None = None,
) -> Run:
    with serving(kind()) as url:
        return run_server(
            Target(url=url, timeout=20),
            [scenario_of(kind)] if scenarios is None else scenarios,
            eras,
            all_checks("server"),
            Redaction(),
            lambda what: None,
        )


def examine_client(
    kind: type[small_client.SmallClient] = small_client.SmallClient,
    eras: Sequence[Era] = tuple(Era),
    *,
    but: frozenset[str] = frozenset(),
    only: frozenset[str] | None = None,
) -> Run:
    """Judge a client in this process without the scripts `but`, in the cases `only` if given."""

    def run_once(url: str, environment: Any, timeout: float) -> ClientEnd:
        return ClientEnd(*small_client.run(kind, url, environment))

    chosen = [script for script in scripts() if script.scenario not in but]
    checks = all_checks("client")
    return run_client(run_once, chosen, eras, checks, 20, lambda what: None, only=only)


def statuses(judgements: Sequence[Judgement]) -> dict[str, str]:
    """Return the worst status of every check over all eras, untestable apart from skipped."""
    worst: dict[str, Judgement] = {}
    for result in collapse(judgements):
        known = worst.get(result.check.id)
        if known is None or result.severity > known.severity:
            worst[result.check.id] = result
    return {
        check: UNTESTABLE if result.untestable else str(result.status)
        for check, result in worst.items()
    }


@dataclass(frozen=True)
class Ended:
    """How one run of the command ended."""

    code: int
    output: str
    errors: str

    @property
    def report(self) -> dict[str, Any]:
        """The report that `--json` printed."""
        assert self.output, self.errors
        report: dict[str, Any] = json.loads(self.output)
        return report

    @property
    def skipped(self) -> set[str]:
        """The ids of the checks that do not apply."""
        return {check["id"] for check in self.report["checks"] if check["status"] == "SKIPPED"}

    @property
    def statuses(self) -> set[str]:
        return {
            UNTESTABLE if check.get("untestable") else check["status"]
            for check in self.report["checks"]
        }


def suite(*arguments: object, environment: dict[str, str] | None = None) -> Ended:
    """Run the command, in this process for speed."""
    output, errors = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    with (
        mock.patch.object(sys, "argv", ["tool-chaining-conformance", *map(str, arguments)]),
        mock.patch.dict("os.environ", environment or {}),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            signal.signal(signal.SIGTERM, handler)
    return Ended(code, output.getvalue(), errors.getvalue())
