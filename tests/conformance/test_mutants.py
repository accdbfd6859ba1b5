"""Every check can fail: each mutant fails its check, and no unrelated one.

It takes seconds to judge a client in full. So the usual run has the first wrong client of each
check, and plays it only the cases that make the check, script by script until one shows the fault.
Nightly, each wrong client is judged in full.
"""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from tool_chaining_conformance.client import mock_server
from tool_chaining_conformance.client.run import name_of
from tool_chaining_conformance.client.script import Case
from tool_chaining_conformance.requirements import load_checks
from tool_chaining_conformance.target.era import Era

from .client_mutants import CLIENT_MUTANTS
from .mutants import Mutant, load_mutants
from .server_mutants import SERVER_MUTANTS
from .small_client import SmallClient
from .small_proxy import SmallProxy
from .small_server import SmallServer
from .support import UNTESTABLE, VECTORS, examine_client, examine_server, scripts, statuses

SERVERS = [mutant for mutant in load_mutants() if load_checks()[mutant.check].side == "server"]
CLIENTS = [mutant for mutant in load_mutants() if load_checks()[mutant.check].side == "client"]
FIRST = {mutant.check: mutant for mutant in reversed(CLIENTS)}.values()
"""The first wrong client of each check."""


def era_of(mutant: Mutant, kind: Any) -> Era:
    """One era is enough to prove a check: the newest that it can be made in."""
    only_in = getattr(kind, "only_in", None)
    return Era(only_in) if only_in else load_checks()[mutant.check].eras[0]


def failed(mutant: Mutant) -> str:
    return "FAILURE" if load_checks()[mutant.check].level == "MUST" else "WARNING"


@cache
def conforming_server(kind: Any, era: Era) -> dict[str, str]:
    return statuses(examine_server(kind, [era]).judgements)


@cache
def conforming_client(
    era: Era,
    but: frozenset[str] = frozenset(),
    only: frozenset[str] | None = None,
) -> dict[str, str]:
    return statuses(examine_client(eras=[era], but=but, only=only).judgements)


def proves(mutant: Mutant, right: dict[str, str], wrong: dict[str, str]) -> None:
    flipped = {check: wrong[check] for check in right if wrong[check] != right[check]}
    assert right[mutant.check] == "SUCCESS"
    assert wrong[mutant.check] == failed(mutant), (
        f"the mutant {mutant.name} does not fail {mutant.check}, which says {wrong[mutant.check]}; "
        f"it changes {', '.join(flipped) or 'nothing'}"
    )
    del flipped[mutant.check]
    assert set(flipped) == set(mutant.collateral)
    assert set(flipped.values()) <= {"FAILURE", "WARNING", "SKIPPED", UNTESTABLE}


@pytest.mark.parametrize("mutant", SERVERS, ids=lambda mutant: mutant.name)
def test_a_wrong_server_fails_its_check_and_no_other(mutant: Mutant) -> None:
    kind = SERVER_MUTANTS[mutant.name]
    era = era_of(mutant, kind)
    like = SmallProxy if issubclass(kind, SmallProxy) else SmallServer
    run = examine_server(kind, [era])
    proves(mutant, conforming_server(like, era), statuses(run.judgements))


def makes(case: Case, check: str) -> bool:
    return any(each.id == check for each in case.checks)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not give a call up does not do so in ten seconds either. All run on this machine."""
    monkeypatch.setattr(mock_server, "CANCEL_SECONDS", 2)
    monkeypatch.setattr(mock_server, "QUIET_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mutant", FIRST, ids=lambda mutant: mutant.name)
def test_a_wrong_client_fails_its_check(mutant: Mutant) -> None:
    kind = CLIENT_MUTANTS[mutant.name]
    era = era_of(mutant, kind)
    making = [
        {name_of(script, case) for case in script.cases if makes(case, mutant.check)}
        for script in scripts()
    ]
    # A few checks look at what the other cases of their script show, too.
    whole = [{name_of(script, case) for case in script.cases} for script in scripts()]
    for cases in map(frozenset, filter(None, [*making, *whole])):
        run = examine_client(kind, [era], only=cases)
        if statuses(run.judgements).get(mutant.check) == failed(mutant):
            assert conforming_client(era, only=cases)[mutant.check] == "SUCCESS"
            return
    pytest.fail(f"the mutant {mutant.name} does not fail {mutant.check} in any script")


@pytest.mark.nightly
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mutant", CLIENTS, ids=lambda mutant: mutant.name)
def test_a_wrong_client_fails_no_other_check(mutant: Mutant) -> None:
    """In all scripts but the vectors: these are a third of all runs."""
    code = CLIENT_MUTANTS[mutant.name]
    era = era_of(mutant, code)
    vectors = next(script for script in scripts() if script.scenario == VECTORS)
    made = {check.id for case in vectors.cases for check in case.checks}
    but = frozenset() if mutant.check in made else frozenset({VECTORS})
    run = examine_client(code, [era], but=but)
    proves(mutant, conforming_client(era, but), statuses(run.judgements))


def test_every_check_has_two_mutants() -> None:
    assert Counter(mutant.check for mutant in load_mutants()) == dict.fromkeys(load_checks(), 2)


def test_the_list_names_the_mutants_that_there_are() -> None:
    assert [mutant.name for mutant in SERVERS] == list(dict.fromkeys(m.name for m in SERVERS))
    assert {mutant.name for mutant in SERVERS} == set(SERVER_MUTANTS)
    assert [mutant.name for mutant in CLIENTS] == list(dict.fromkeys(m.name for m in CLIENTS))
    assert {mutant.name for mutant in CLIENTS} == set(CLIENT_MUTANTS) - {"follows-nothing"}


def test_a_client_that_follows_nothing_earns_no_success_for_ignoring_something() -> None:
    run = examine_client(CLIENT_MUTANTS["follows-nothing"], [Era.MODERN])
    judged = statuses(run.judgements)
    earned = {check for check, status in judged.items() if status == "SUCCESS"}
    assert earned <= {
        "tool-chaining-client-declares",
        "tool-chaining-client-settings-valid",
    }
    assert judged["tool-chaining-client-follows-directive"] == "FAILURE"


@pytest.mark.parametrize("era", Era)
def test_what_conforms_passes_everything(era: Era) -> None:
    # What only an intermediary can show does not apply to a shop.
    proxy = conforming_server(SmallProxy, era)
    server = {
        check: proxy[check] if status == "SKIPPED" else status
        for check, status in conforming_server(SmallServer, era).items()
    }
    if era is Era.LEGACY:
        # The shop has no tasks, and there nothing else is interim.
        interim = "tool-chaining-server-no-directive-on-interim-result"
        assert server.pop(interim) == "SKIPPED"
        server[interim] = "SUCCESS"
    judged = server | statuses(examine_client(SmallClient, [era]).judgements)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}
    assert set(judged) == {check.id for check in load_checks().values() if era in check.eras}
