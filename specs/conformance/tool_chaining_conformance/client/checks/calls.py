"""Checks of the client's calls, their arguments, and calls that it must not make."""

import itertools
import json
from typing import Any

from tool_chaining_conformance.client.checks.registry import if_proven, kind
from tool_chaining_conformance.client.evidence import CaseRun, name_calls
from tool_chaining_conformance.client.script import ScriptCheck
from tool_chaining_conformance.report.judgement import Finding, Judged, NotApplicable
from tool_chaining_conformance.values import identity, quote, same


def _not_made(case_run: CaseRun, check: ScriptCheck, number: int) -> Judged:
    """Return the judgement on the missing call `number`, which was expected."""
    # A client that makes the same call in another case has no reason to decline it here.
    no_excuse = bool(check.provided) and case_run.end.outcome == "declined"
    if not no_excuse and (excuse := case_run.excuse()) is not None:
        return excuse
    expected = case_run.case.expect.calls[number - 1]
    return Finding(
        False,
        expected=f"call {number}: {expected.tool} {quote(expected.arguments)}",
        seen=f"{name_calls(case_run.log)}; {case_run.end}",
    )


@kind("called")
def called(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Call number `call` was made, by the expected tool."""
    number = check.call or 1
    call = case_run.made.get(number)
    if call is None:
        return _not_made(case_run, check, number)
    return Finding(True, expected=f"call {number}: {call.tool}", seen=name_calls(case_run.log))


@kind("arguments")
def arguments(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Call number `call` was made, by the expected tool and with the expected arguments."""
    number = check.call or 1
    call = case_run.made.get(number)
    if call is None:
        return _not_made(case_run, check, number)
    expected = case_run.case.expect.calls[number - 1].arguments
    return Finding(
        same(call.arguments, expected),
        expected=f"call {number}: {call.tool} with exactly {quote(expected)}",
        seen=f"{call.tool} with {quote(call.arguments)}",
    )


@kind("not_called", forbids=True)
def not_called(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The tool `tool` was called at most `at_most` times, on the other server if `other_server`."""
    log, where = case_run.log, ""
    if check.other_server:
        if case_run.other is None or not case_run.other.requests:
            return NotApplicable("the client never connected to the other server")
        log, where = case_run.other, " on the other server"
    allowed = check.at_most or 0
    meant = [
        call
        for call in log.operations
        if call.tool == check.tool
        and (check.arguments is None or same(check.arguments, call.arguments))
    ]
    holds = sum(call.times for call in meant) <= allowed
    calls = f"at most {allowed} call{'s' * (allowed > 1)}" if allowed else "no call"
    again = [f"; call {call.number} was sent again" for call in meant if call.times > 1]
    expected, seen = f"{calls} of {check.tool}{where}", name_calls(log) + "".join(again)
    finding = Finding(holds, expected, seen)
    return if_proven(case_run, holds, finding)


@kind("calls_end", forbids=True)
def calls_end(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """No call was made but the expected ones, up to call number `witness`."""
    later = case_run.not_among(check.witness)
    rounds = [each for answer in case_run.case.answers for each in answer.rounds]
    sent = [json.loads(each.meta_text) for each in rounds if each.meta_text]
    if later and any(map(_has_half_a_pair, sent)) and not _has_half_a_pair(later[0].arguments):
        return NotApplicable("the client's parser replaces half of a surrogate pair")
    count = "1 call" if check.witness == 1 else f"{check.witness} calls"
    names = ", ".join(call.tool for call in case_run.case.expect.calls[: check.witness])
    expected, seen = f"{count}: {names}", name_calls(case_run.log)
    return if_proven(case_run, not later, Finding(not later, expected, seen))


def _has_half_a_pair(value: Any) -> bool:
    """Return whether a JSON value contains half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return any("\ud800" <= character <= "\udfff" for character in text)


@kind("call_count")
def call_count(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The number of calls is `exactly` the given number."""
    count, wanted = len(case_run.log.operations), check.exactly or 0
    finding = Finding(count == wanted, f"exactly {wanted} calls", f"{count} calls")
    return if_proven(case_run, count <= wanted, finding)


@kind("list_read_again")
def list_read_again(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """After call number `witness` was answered, `tools/list` was requested or a call was made."""
    read = any(
        request.method == "tools/list" and request.calls >= check.witness
        for request in case_run.log.requests
    )
    called = len(case_run.log.operations) > check.witness
    finding = Finding(
        read or called,
        expected=f"tools/list requested after call {check.witness} was answered",
        seen="it was requested" if read else f"it was not requested; {name_calls(case_run.log)}",
    )
    return if_proven(case_run, not finding.holds, finding)


@kind("authorization_kept")
def authorization_kept(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Every call had the header `Authorization` of the first call."""
    calls = case_run.log.operations
    if calls[0].authorization is None:
        return NotApplicable("the client does not use the bearerToken of the context")
    other = [call for call in calls if call.authorization != calls[0].authorization]
    return Finding(
        not other,
        expected="the same Authorization with every call of the chain",
        seen=(
            f"call {other[0].number} has "
            + ("none" if other[0].authorization is None else "another")
            if other
            else "the same"
        ),
    )


@kind("in_turns")
def in_turns(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Chains with equal first calls made every expected call, one chain after the other.

    The arguments of a call tell its chain. Which chain came first, only the client knows.
    """
    first, log = case_run.case.first_call.tool, case_run.log
    calls = [call for call in log.operations if call.tool != first]
    if not calls and (excuse := case_run.excuse()) is not None:
        return excuse
    expected = [call for call in case_run.case.expect.calls if call.tool != first]
    wanted = [[call.tool, call.arguments] for call in expected]
    made = [[call.tool, call.arguments] for call in calls]
    overlap = [
        call
        for call in calls
        if any(o.tool != first and not same(o.arguments, call.arguments) for o in call.beside)
    ]
    complete = sorted(map(identity, made)) == sorted(map(identity, wanted))
    turns = [chain for chain, _ in itertools.groupby(identity(call.arguments) for call in calls)]
    at_once = f"; {overlap[0].tool} began while a call of another chain ran" if overlap else ""
    return Finding(
        complete and not overlap and len(turns) == len(set(turns)),
        expected="one chain after the other: " + ", ".join(f"{t} {quote(a)}" for t, a in wanted),
        seen=f"{name_calls(log)}{at_once}; {case_run.end}",
    )


@kind("running")
def running(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The tool `tool` was called `exactly` so often, and two or more calls of it ran at once."""
    calls = [call for call in case_run.log.operations if call.tool == check.tool]
    if not calls and (excuse := case_run.excuse()) is not None:
        return excuse
    most = max((call.at_once for call in calls), default=0)
    wanted = check.exactly or 0
    return Finding(
        len(calls) == wanted and most > 1,
        expected=f"{wanted} calls of {check.tool}, two or more at once",
        seen=f"{len(calls)} calls, at most {most} at once; {case_run.end}",
    )
