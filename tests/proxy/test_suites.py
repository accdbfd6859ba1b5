"""What judges servers and clients judges the proxy too: the suites pass through it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.run import run_client
from banking_server.conformance.target.era import Era

from ..conformance.bank_process import Bank
from ..conformance.node_project import missing
from ..conformance.support import all_checks, scripts
from ..conformance.test_official_suite import PACKAGE, SCENARIOS, official
from . import proxied_client
from .wire import proxy_over_http


@pytest.fixture(scope="module")
def bank(folder: Path) -> Iterator[Bank]:
    with Bank(folder, {"BANKING_CALLS_PER_SECOND": "0"}) as bank:
        yield bank


@pytest.fixture(scope="module")
def signed_in(bank: Bank, folder: Path) -> Iterator[str]:
    """The URL of a proxy that is a customer of the bank, and asks nobody who it is."""
    token = bank.token()
    at = ("--trust-hints", "--url", bank.url)
    with proxy_over_http(folder, *at, TOOL_CHAINING_PROXY_TOKEN=token) as proxy:
        yield proxy.url


@pytest.mark.needs_program(missing(PACKAGE))
@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_the_official_suite(signed_in: str, version: str, scenario: str, tmp_path: Path) -> None:
    """The same fails that the bank itself does not have, and no more."""
    official(signed_in, version, scenario, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("era", Era)
def test_the_client_suite(era: Era) -> None:
    """Nothing is left out: each check of each case applies, and holds."""

    def run_once(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        return ClientEnd(0, proxied_client.run_once(url, environment), "")

    run = run_client(run_once, scripts(), [era], all_checks("client"), 30, lambda what: None)
    assert [one for one in run.judgements if one.status != "SUCCESS"] == []
