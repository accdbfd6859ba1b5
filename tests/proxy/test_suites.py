"""What judges servers and clients judges the proxy too: the suites pass through it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tool_chaining_conformance.target.era import Era

from ..conformance.node_project import missing
from ..conformance.support import Ended, examine_program, scripts, suite
from ..conformance.test_official_suite import PACKAGE, SCENARIOS, official
from ..kit.servers import HttpServer, http_server
from . import proxied_client
from .wire import proxy_over_http

SCENARIO = Path(__file__).with_name("followed.yaml")


@pytest.fixture(scope="module")
def bank(folder: Path) -> Iterator[HttpServer]:
    with http_server(folder) as bank:
        yield bank


@pytest.fixture(scope="module")
def signed_in(bank: HttpServer, folder: Path) -> Iterator[str]:
    """The URL of a proxy that is a customer of the bank, and asks nobody who it is."""
    token = bank.token()
    at = ("--trust-hints", "--url", bank.url)
    with proxy_over_http(folder, *at, MCP_TOKEN=token) as proxy:
        yield proxy.url


@pytest.mark.needs_program(missing(PACKAGE))
@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_the_official_suite(signed_in: str, version: str, scenario: str, tmp_path: Path) -> None:
    """The same fails that the bank itself does not have, and no more."""
    official(signed_in, version, scenario, tmp_path)


NOTHING_TO_FOLLOW = {
    # The proxy follows by itself, so it sends no directives, and says so.
    "tool-chaining-server-advertises",
}
BOTH = {
    "tool-chaining-server-chained-call-authorized",
    "tool-chaining-server-intermediary-removes-directive",
    "tool-chaining-server-no-directive-on-other-methods",
    "tool-chaining-server-provenance-changes-nothing",
}
INTERIM = "tool-chaining-server-no-directive-on-interim-result"
"""On 2025-11-25 only tasks are interim, and the bank has none."""


@pytest.mark.ci
def test_the_server_scenario(bank: HttpServer, folder: Path) -> None:
    """All that can be said of a server whose chains are followed, for two of its customers."""
    at = ("--trust-hints", "--url", bank.url, "--forward-authorization")
    with proxy_over_http(folder, *at) as proxy:
        run = suite(
            *("server", "--url", proxy.url, "--scenario", SCENARIO, "--json"),
            *("--header", "Authorization=BANK_TOKEN"),
            environment={
                "BANK_TOKEN": f"Bearer {bank.token()}",
                "BANKING_STRANGER": f"Bearer {bank.token('CUST002')}",
            },
        )
    assert with_status(run, "SUCCESS") == {
        *((Era.MODERN, check) for check in {*BOTH, INTERIM}),
        *((Era.LEGACY, check) for check in BOTH),
    }
    # Each step came to what it was meant to show.
    assert "problems" not in run.report
    assert with_status(run, "FAILURE") == set()
    assert {check for _, check in with_status(run, "WARNING")} == NOTHING_TO_FOLLOW


def with_status(run: Ended, status: str) -> set[tuple[str, str]]:
    checks = run.report["checks"]
    return {(one["spec_version"], one["id"]) for one in checks if one["status"] == status}


@pytest.mark.ci
@pytest.mark.parametrize("era", [Era.MODERN, pytest.param(Era.LEGACY, marks=pytest.mark.nightly)])
def test_the_client_suite(era: Era) -> None:
    """Each check of each case applies and holds, but for these.

    The server validates arguments (TC-C-14), and a host that trusts the hints lets its model make
    the harmless call, too. The host of the program cancels nothing late, and a question in an
    interim result gives up the turn. `test_never_twice.py` has what only a proxy can show.
    """
    run = examine_program(proxied_client.run_once, [era])
    others = [one for one in run.judgements if one.status != "SUCCESS"]
    unfit = {
        case.name
        for script in scripts()
        for case in script.cases
        if case.expect and case.expect.outcome == "invalid_arguments"
    }
    handed_out = {"equal-and-asked"} if era is Era.MODERN else set[str]()
    assert {one.step for one in others} == {*unfit, "harmless-tool", "cancelled-late", *handed_out}
    assert {(one.check.id, one.status) for one in others} == {
        ("tool-chaining-client-same-policy-as-for-the-model", "SKIPPED"),
        ("tool-chaining-client-late-cancellation", "SKIPPED"),
        *(("tool-chaining-client-equal-chains-take-turns", "SKIPPED") for _ in handed_out),
        ("tool-chaining-client-invalid-arguments-not-called", "WARNING"),
    }
