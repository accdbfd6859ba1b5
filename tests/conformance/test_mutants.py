"""Every check can fail: each mutant fails its check, and no unrelated one."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from banking_server.conformance.client import mock_server
from banking_server.conformance.formats import Mutant
from banking_server.conformance.report.judgement import Status
from banking_server.conformance.requirements import load_checks
from banking_server.conformance.target.era import Era
from banking_server.conformance.traceability import load_mutants

from .client_mutants import CLIENT_MUTANTS
from .server_mutants import SERVER_MUTANTS
from .small_proxy import SmallProxy
from .small_server import SmallServer
from .support import UNTESTABLE, VECTORS, examine_client, examine_server, scripts, statuses

SERVERS = [mutant for mutant in load_mutants() if load_checks()[mutant.check].side == "server"]
CLIENTS = [mutant for mutant in load_mutants() if load_checks()[mutant.check].side == "client"]


def each(mutants: Sequence[Mutant]) -> Iterator[Any]:
    """Yield the mutants as parameters: in the usual run the first one of each check."""
    seen = set[str]()
    for mutant in mutants:
        marks = [pytest.mark.nightly] if mutant.check in seen else []
        seen.add(mutant.check)
        yield pytest.param(mutant, id=mutant.name, marks=marks)


MADE_BY = {
    script.scenario: {check.id for case in script.cases for check in case.checks}
    for script in scripts()
}
"""The checks that each script makes."""


def left_out(mutant: Mutant, nightly: bool) -> frozenset[str]:
    """Return the scripts that cannot show what the mutant is to fail.

    If nothing may be left out they show that it fails nothing else, but for the vectors: these are
    a third of all runs.
    """
    failed = {mutant.check, *mutant.collateral}
    if nightly or not failed <= set().union(*MADE_BY.values()):
        return frozenset() if mutant.check in MADE_BY[VECTORS] else frozenset({VECTORS})
    return frozenset(name for name, checks in MADE_BY.items() if not failed & checks)


def era_of(mutant: Mutant, kind: Any = None) -> Era:
    """One era is enough to prove a check: the newest that it can be made in."""
    only_in = getattr(kind, "only_in", None)
    return Era(only_in) if only_in else load_checks()[mutant.check].eras[0]


@cache
def conforming_server(kind: Any, era: Era) -> dict[str, str]:
    return statuses(examine_server(kind, [era]).judgements)


def conforming_like(kind: Any, era: Era) -> dict[str, str]:
    """What is said of the conforming server of which `kind` is a wrong one."""
    base = next(each for each in kind.__mro__ if each in (SmallProxy, SmallServer))
    return conforming_server(base, era)


@cache
def conforming_client(era: Era, waits: bool, but: frozenset[str] = frozenset()) -> dict[str, str]:
    run = examine_client(eras=[era], waits=waits, but=but)
    return statuses(run.judgements)


def code_of(mutant: Mutant, mutants: dict[str, Any]) -> Any:
    if mutant.name not in mutants:
        pytest.fail(
            f"mutants.yaml lists {mutant.name}, and no class in tests/conformance is registered "
            f"with @mutant({mutant.name!r})"
        )
    return mutants[mutant.name]


def proves(
    mutant: Mutant, right: dict[str, str], wrong: dict[str, str], nightly: bool = True
) -> None:
    flipped = {check: wrong[check] for check in right if wrong[check] != right[check]}
    check = load_checks()[mutant.check]
    assert right[check.id] == "SUCCESS"
    fails = "FAILURE" if check.level == "MUST" else "WARNING"
    assert wrong[check.id] == fails, (
        f"the mutant {mutant.name} does not fail {check.id}, which says {wrong[check.id]}; "
        f"it changes {', '.join(flipped) or 'nothing'}"
    )
    del flipped[check.id]
    if not nightly:
        # What few scripts show of other checks, a wrong client may keep from being seen.
        unseen = ("SKIPPED", UNTESTABLE)
        flipped = {
            check: status
            for check, status in flipped.items()
            if status not in unseen or check in mutant.collateral
        }
    assert set(flipped) == set(mutant.collateral)
    assert set(flipped.values()) <= {"FAILURE", "WARNING", "SKIPPED", UNTESTABLE}


@pytest.mark.parametrize("mutant", each(SERVERS))
def test_a_wrong_server_fails_its_check_and_no_other(mutant: Mutant) -> None:
    kind = code_of(mutant, SERVER_MUTANTS)
    era = era_of(mutant, kind)
    run = examine_server(kind, [era])
    proves(mutant, conforming_like(kind, era), statuses(run.judgements))


@pytest.mark.parametrize(
    "name",
    [
        "calls-hidden-tools",  # Differs in few cases,
        "fetches-references",  # in what it asks of another place,
        "limit-of-four",  # and in how far it goes, by which other cases are judged, too.
    ],
)
def test_a_run_with_replays_says_what_a_run_without_says(name: str) -> None:
    kind = CLIENT_MUTANTS[name]

    def told(replays: bool) -> list[tuple[str, str, str, Status]]:
        run = examine_client(
            kind, [Era.MODERN], waits=False, but=frozenset({VECTORS}), replays=replays
        )
        return [(each.check.id, each.scenario, each.step, each.status) for each in run.judgements]

    assert told(replays=True) == told(replays=False)


@pytest.mark.parametrize("mutant", each(CLIENTS))
def test_a_wrong_client_fails_its_check_and_no_other(
    mutant: Mutant, nightly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = code_of(mutant, CLIENT_MUTANTS)
    era = era_of(mutant, code)
    but = left_out(mutant, nightly)
    # Who does not give a call up does not do so in ten seconds either.
    monkeypatch.setattr(mock_server, "CANCEL_SECONDS", 2)
    run = examine_client(code, [era], waits=code.waits, but=but, replays=not nightly)
    proves(mutant, conforming_client(era, code.waits, but), statuses(run.judgements), nightly)


def test_every_check_has_a_mutant() -> None:
    assert {mutant.check for mutant in load_mutants()} == set(load_checks())


def test_the_list_names_the_mutants_that_there_are() -> None:
    assert [mutant.name for mutant in SERVERS] == list(dict.fromkeys(m.name for m in SERVERS))
    assert {mutant.name for mutant in SERVERS} == set(SERVER_MUTANTS)
    assert [mutant.name for mutant in CLIENTS] == list(dict.fromkeys(m.name for m in CLIENTS))
    assert {mutant.name for mutant in CLIENTS} == set(CLIENT_MUTANTS) - {"follows-nothing"}


def test_a_client_that_follows_nothing_earns_no_success_for_ignoring_something() -> None:
    judged = statuses(examine_client(CLIENT_MUTANTS["follows-nothing"]).judgements)
    earned = {check for check, status in judged.items() if status == "SUCCESS"}
    assert earned <= {
        "tool-chaining-client-declares-per-request",
        "tool-chaining-client-declares-in-initialize",
        "tool-chaining-client-settings-valid",
    }
    assert judged["tool-chaining-client-follows-directive"] == "FAILURE"


@pytest.mark.parametrize("era", Era)
def test_what_conforms_passes_everything(
    era: Era,
) -> None:
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
    judged = server | conforming_client(era, True)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}
    assert set(judged) == {check.id for check in load_checks().values() if era in check.eras}
