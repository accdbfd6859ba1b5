"""Judges a client: runs it against the mock server, case by case, and checks its behavior."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tool_chaining_conformance.client.checks import judge_check
from tool_chaining_conformance.client.checks.declaration import chain_ids
from tool_chaining_conformance.client.evidence import CaseRun
from tool_chaining_conformance.client.mock_server import (
    CANCEL,
    CANCELLED,
    KEPT_BYTES,
    Allowance,
    MockServer,
)
from tool_chaining_conformance.client.programs import (
    CONTEXT,
    PROTOCOL_VERSION,
    SCENARIO,
    RunClient,
)
from tool_chaining_conformance.client.script import Case, ClientScript, ScriptCheck
from tool_chaining_conformance.message import CLIENT_INFO_KEY, Json, within
from tool_chaining_conformance.report.judgement import Finding, Judge, Untestable
from tool_chaining_conformance.report.run import STOPPED, Run
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote

PATIENCE: Final = 2
"""After so many timeouts in a row, or crashes before a request, the suite makes no more runs."""

Progress = Callable[[str], None]
"""Receives a line for standard error."""


def run_client(
    run_once: RunClient,
    scripts: Sequence[ClientScript],
    eras: Sequence[Era],
    timeout: float,
    progress: Progress,
    *,
    only: frozenset[str] | None = None,
) -> Run:
    """Run the client once for each case, and judge it.

    Args:
        run_once: Runs the client.
        scripts: The scripts for the mock server.
        eras: The eras to play them in.
        timeout: Seconds for one run.
        progress: Called ten times for each revision.
        only: The cases to judge, as `scenario/case`; None: all.

    Raises CannotStart.
    """
    examination = _Examination(run_once, timeout, progress)
    for era in eras:
        cases = {
            name_of(script, case): (script, case)
            for script in scripts
            for case in script.cases
            if era in script.eras_of(case)
        }
        wanted = [name for name in cases if only is None or name in only]
        needed = {
            provided.case
            for name in wanted
            for check in cases[name][1].checks
            for provided in check.provided
        }
        examination.run_all(era, {n: c for n, c in cases.items() if n in needed.union(wanted)})
        for name in wanted:
            examination.judge(*cases[name], era)
    if examination.allowance.left < 0:
        most = f"{KEPT_BYTES // 1024**2} MiB"
        examination.run.problems.append(
            f"the client sent more than {most} in all; the mock server refused the rest (HTTP 413)"
        )
    examination.run.excuse_unspoken_eras()
    return examination.run


def name_of(script: ClientScript, case: Case) -> str:
    """Return the name of a case among all: its scenario's, and its own."""
    return f"{script.scenario}/{case.name}"


class _Examination:
    """The runs of one client, and their results in the order of the plan."""

    def __init__(self, run_once: RunClient, timeout: float, progress: Progress) -> None:
        self.run = Run("client")
        self.allowance = Allowance()
        self._overdue = 0
        """The number of consecutive timeouts, and crashes before a request."""
        self._run_once = run_once
        self._timeout = timeout
        self._progress = progress
        self._chain_ids: dict[str, str] = {}
        """Every chain id, with the run where it first occurred."""
        self._runs: dict[str, CaseRun] = {}
        """Every run of the client in this era, by name."""
        self._left: dict[str, str] = {}
        """Why a run was skipped, or cannot be judged, by its name."""

    def run_all(self, era: Era, plan: Mapping[str, tuple[ClientScript, Case]]) -> None:
        """Run the client in every case of a plan, by its name, until no further run is useful.

        SystemExit, which a signal raises, stops the run. The judgements so far are kept.
        """
        self._overdue, self._runs = 0, {}
        self._left = dict.fromkeys(plan, STOPPED)
        if self.run.stopped:
            return
        try:
            self._run_all(era, plan)
        except SystemExit as signalled:
            self.run.stopped = int(signalled.code or 0)
            made = f"{len(self._runs)} of {len(plan)} runs were made"
            self.run.problems.append(f"{era}: {STOPPED}; {made}")

    def _run_all(self, era: Era, plan: Mapping[str, tuple[ClientScript, Case]]) -> None:
        for number, (name, (script, case)) in enumerate(plan.items()):
            if number and number * 10 // len(plan) != (number - 1) * 10 // len(plan):
                self._progress(f"{era}: {number} of {len(plan)} runs")
            if (reason := self.run.unspoken.get(era)) is not None:
                self._left[name] = reason
            elif self._overdue >= PATIENCE:
                late = "the client did not end in time, or crashed before it sent a request"
                self._left[name] = f"{late}, in {PATIENCE} runs, one after the other"
            else:
                made = play(self._run_once, script, case, era, self._timeout, self.allowance)
                self._take(name, case, era, made)

    def _take(self, name: str, case: Case, era: Era, case_run: CaseRun) -> None:
        """Record the result of a run."""
        self._note(case_run)
        ended_well = case_run.end.ended_well
        if not case_run.log.requests and (case.expect.calls or not ended_well):
            self._left[name] = _silence(case_run)
            says_so = ended_well or case_run.log.refused_method is not None
            note = self.run.ended_early if says_so else self.run.crashed
            note(name, era, _silence(case_run))
            return
        if case_run.log.requests:
            self.run.spoke(era)
        if not ended_well:
            self.run.crashed(name, era, str(case_run.end))
        self._runs[name] = case_run

    def judge(self, script: ClientScript, case: Case, era: Era) -> None:
        """Judge one case, after all cases of the era were run."""
        judge = Judge(script.scenario, era)
        name = name_of(script, case)
        case_run = self._runs.get(name)
        if case_run is None:
            for check in case.checks:
                reason = Untestable(self._left[name])
                judge.record(check.id, reason, step=case.name, crashed=True)
        else:
            case_run = replace(case_run, earlier_chain_ids=dict(self._chain_ids), others=self._runs)
            for check in case.checks:
                _judge(case_run, check, judge)
            for chain_id in chain_ids(case_run):
                self._chain_ids.setdefault(chain_id, name)
        self.run.judgements += judge.judgements

    def _note(self, case_run: CaseRun) -> None:
        """Record what the report should say about every run of the client."""
        run = self.run
        end = case_run.end
        lost = end.exit_code is None or not (end.ended_well or case_run.log.requests)
        self._overdue = self._overdue + 1 if lost else 0
        for request in case_run.log.requests:
            in_meta = within(request.params, "_meta", CLIENT_INFO_KEY)
            info = within(request.params, "clientInfo") or in_meta
            if run.name is None and info:
                run.name, run.version = str(info.get("name")), str(info.get("version"))


def play(
    run_once: RunClient,
    script: ClientScript,
    case: Case,
    era: Era,
    timeout: float,
    allowance: Allowance,
) -> CaseRun:
    """Run the client in one case, with mock servers of its own.

    `timeout` is how many seconds it may take, `allowance` how much it may send. Raises CannotStart.
    """
    options: Any = {"patience": timeout, "allowance": allowance}
    with contextlib.ExitStack() as servers:
        mock = servers.enter_context(MockServer(script, case, era, **options))
        context, other = _context(script, case, mock), None
        if script.other_server is not None:
            second = MockServer(script, case, era, **options, other=True)
            context["otherServerUrl"] = servers.enter_context(second).url
            other = second.log
        context_text = json.dumps(context)
        environment = {SCENARIO: script.scenario, PROTOCOL_VERSION: era, CONTEXT: context_text}
        return CaseRun(script, case, era, mock.log, other, run_once(mock.url, environment, timeout))


def _context(script: ClientScript, case: Case, mock: MockServer) -> Json:
    """Return the context for the client."""
    context: Json = {
        "name": script.scenario,
        "case": case.name,
        "tool": case.first_call.tool,
        "arguments": case.first_call.arguments,
        **case.context.model_dump(by_alias=True, exclude_none=True),
    }
    if case.elicitation is not None:
        context["elicitation"] = case.elicitation
    if case.context.cancel:
        context["cancelUrl"] = mock.origin + CANCEL
    if case.context.cancel_late:
        context["cancelledUrl"] = mock.origin + CANCELLED
    return context


def _silence(case_run: CaseRun) -> str:
    """Return why nothing can be judged in a case."""
    if (method := case_run.log.refused_method) is not None:
        return f"it sent {method}, a method of another revision; {case_run.end}"
    end = case_run.end
    must = ", and must exit with 0 if it does not support the revision" * (not end.ended_well)
    return f"it sent no request to the mock server{must}; {end}"


def _judge(case_run: CaseRun, check: ScriptCheck, judge: Judge) -> None:
    """Make one check of a case, and record what it found."""
    judged = judge_check(case_run, check)
    if isinstance(judged, Finding) and not judged.holds:
        judged = replace(judged, seen=judged.seen + _outcome(case_run, judged.seen))
    judge.record(
        check.id,
        judged,
        step=case_run.case.name,
        crashed=not case_run.end.ended_well,
        messages=case_run.log.messages,
    )


def _outcome(case_run: CaseRun, seen: str) -> str:
    """Return the outcome that the client printed, unless the text `seen` has it already."""
    printed, expected = case_run.end.outcome, case_run.case.expect.outcome
    if printed is None or printed in seen:
        return ""
    other = "" if expected in (None, printed) else f" in place of {quote(expected)}"
    return f"; it printed the outcome {quote(printed)}{other}"
