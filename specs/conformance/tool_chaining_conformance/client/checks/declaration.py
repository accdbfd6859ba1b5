"""Checks of the client's declaration, and of the provenance of its calls."""

from collections.abc import Iterator
from typing import Any, Final

from tool_chaining_conformance.client.checks.registry import kind
from tool_chaining_conformance.client.evidence import CaseRun
from tool_chaining_conformance.client.mock_server import Operation
from tool_chaining_conformance.client.script import ScriptCheck
from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.report.judgement import Finding, Judged, NotApplicable
from tool_chaining_conformance.specification import schema_of
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote

_PLACES: Final = ("extensions", "experimental")


@kind("declared")
def declared(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The client declared the extension in every request, or on 2025-11-25 in `initialize`."""
    declarations, requests = case_run.log.client_capabilities(), case_run.log.requests
    legacy = case_run.era is Era.LEGACY
    places = _PLACES if legacy else _PLACES[:1]
    declaring = [each for each in declarations if _settings_in(each, *places)]
    where = " or ".join(f"capabilities.{place}" for place in places)
    return Finding(
        bool(declaring) if legacy else len(declaring) == len(requests),
        expected=f"{IDENTIFIER} in {where} of {'initialize' if legacy else 'every request'}",
        seen=f"in {len(declaring)} of {len(requests)} requests: {quote(declarations)}",
    )


@kind("settings_valid")
def settings_valid(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Every settings object that the client declared meets the published schema."""
    found = [
        settings
        for capabilities in case_run.log.client_capabilities()
        for settings in _settings_in(capabilities, *_PLACES)
    ]
    if not found:
        return NotApplicable("the client declares no settings")
    wrong = [settings for settings in found if not schema_of("settings").is_valid(settings)]
    return Finding(
        not wrong,
        expected="a settings object whose version, if there is one, is an integer of at least 1",
        seen=quote(wrong[0] if wrong else found[0]),
    )


def _settings_in(capabilities: Json, *names: str) -> list[Any]:
    """Return the settings of the extension in these members of a client's capabilities."""
    places = [within(capabilities, name) for name in names]
    return [place[IDENTIFIER] for place in places if IDENTIFIER in place]


def chain_ids(case_run: CaseRun) -> list[str]:
    """Return the chain ids of a run of the client, as reports show them."""
    return [
        quote(provenance["chainId"])
        for provenance in map(_provenance, case_run.log.operations)
        if isinstance(provenance, dict) and isinstance(provenance.get("chainId"), str)
    ]


@kind("provenance_present")
def provenance_present(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Every call after the first had provenance."""
    without = [call.number for call in case_run.log.operations[1:] if IDENTIFIER not in call.meta]
    return Finding(
        not without,
        expected=f"_meta.{IDENTIFIER} on every follow-up call",
        seen=f"none on call {', '.join(map(str, without))}" if without else "on all of them",
    )


@kind("provenance_well_formed")
def provenance_well_formed(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """All provenance meets the published schema, with the correct chain, level and tool."""
    carried = [call for call in case_run.log.operations if IDENTIFIER in call.meta]
    if not any(call.number > 1 for call in carried):
        return NotApplicable("no follow-up call has provenance")
    fault = next(_faults(case_run, carried), None)
    expected, call = fault or (SHAPE, carried[-1])
    return Finding(
        fault is None,
        expected=expected,
        seen=f"call {call.number}: {quote(_provenance(call))}",
    )


SHAPE = (
    "an object with chainId (1 to 128 characters), level (an integer of at least 1) and, only "
    "above level 1, previousTool"
)


def _faults(case_run: CaseRun, carried: list[Operation]) -> Iterator[tuple[str, Operation]]:
    """Yield each call with wrong provenance, after a text that says what was expected."""
    ids: dict[int, str] = {}
    for call in carried:
        provenance, begins = _provenance(call), _begin(case_run, call)
        if not schema_of("provenance").is_valid(provenance):
            yield SHAPE, call
            return
        chain_id = ids.setdefault(begins, provenance["chainId"])
        if provenance["chainId"] != chain_id:
            yield f"chainId {quote(chain_id)}, as in the calls before", call
        earlier = case_run.earlier_chain_ids.get(quote(chain_id))
        if earlier is not None or list(ids.values()).count(chain_id) > 1:
            yield f"a chainId of its own; {earlier or 'the chain before'} had the same one", call
        level = call.number - begins + 1
        if provenance["level"] != level:
            yield f"level {level}, the number of the call", call
        previous = case_run.log.operations[call.number - 2].tool
        if level > 1 and provenance.get("previousTool") != previous:
            yield f"previousTool {quote(previous)}", call


def _begin(case_run: CaseRun, call: Operation) -> int:
    """Return the number of the call that began a call's chain: `furtherCalls` begin others."""
    first = case_run.case.first_call
    several = case_run.case.context.further_calls
    calls = case_run.log.operations[: call.number] if several else []
    begun = [each.number for each in calls if each.is_of(first.tool, first.arguments)]
    return begun[-1] if begun else 1


def _provenance(call: Operation) -> Any:
    return call.meta.get(IDENTIFIER)
