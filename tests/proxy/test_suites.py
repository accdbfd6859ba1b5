"""What judges a server or a client judges the proxy: the suites pass through it."""

from collections.abc import Mapping

import pytest

from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.run import run_client
from banking_server.conformance.target.era import Era

from ..conformance.support import all_checks, scripts, statuses
from . import proxied_client


@pytest.mark.parametrize("era", Era)
def test_the_client_suite(era: Era) -> None:
    def run_once(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        return ClientEnd(0, proxied_client.run_once(url, environment), "")

    run = run_client(
        run_once, scripts(), [era], all_checks("client"), 30, lambda what: None, jobs=2
    )
    judged = statuses(run.judgements)
    for each in run.judgements:
        if each.status in ("FAILURE", "WARNING") or each.untestable:
            print(each.check.id, each.step, each.status, each.seen)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}
