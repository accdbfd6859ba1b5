"""Judges a client: runs it against the mock server, case by case, and looks at what it did."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from banking_server.conformance.client.checks import judge_check
from banking_server.conformance.client.checks.provenance import chain_ids
from banking_server.conformance.client.evidence import CaseRun, ClientEnd
from banking_server.conformance.client.mock_server import Log, MockServer
from banking_server.conformance.client.script import Case, ClientScript, ScriptCheck
from banking_server.conformance.message import CLIENT_INFO_KEY, Json
from banking_server.conformance.report.judgement import Judge, Untestable
from banking_server.conformance.report.keeping import Keeper
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.run import ClientOutput, Run
from banking_server.conformance.requirements import checks_of
from banking_server.conformance.target.child_process import ChildProcess
from banking_server.conformance.target.era import Era

PATIENCE: Final = 2
"""Runs in a row that may exceed their time before the rest is left out."""

Progress = Callable[[str], None]
"""Is told which case is under way."""


class RunClient(Protocol):
    """Runs the client under test once."""

    def __call__(self, url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        """Run it against the mock server at `url`. Raises CannotStart."""
        ...


def command_runner(command: Sequence[str]) -> RunClient:
    """Return how to run a client that is a command: the URL becomes its last argument."""

    def run(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        with ChildProcess([*command, url], interactive=False, environment=environment) as process:
            exit_code = process.wait(timeout)
            process.stop()
            return ClientEnd(exit_code, process.captured_output(), process.captured_errors())

    return run


def run_client(
    run_once: RunClient,
    scripts: Sequence[ClientScript],
    eras: Sequence[Era],
    chosen: frozenset[str],
    timeout: float,
    progress: Progress,
) -> Run:
    """Run the client once for each case that a chosen check needs, and judge it.

    Raises CannotStart.
    """
    examination = _Examination(run_once, timeout, progress)
    for era in eras:
        examination.overdue = 0
        for script in scripts:
            judge = Judge(script.scenario, era, chosen, Keeper(Redaction()))
            for case in script.cases:
                checks = [
                    check
                    for check in case.checks
                    if era in script.eras_of(case)
                    and era in check.spec_versions
                    and judge.wants(check.id)
                ]
                if checks:
                    examination.play(script, case, checks, judge)
            examination.run.judgements += judge.judgements
    run = examination.run
    run.excuse_unspoken_eras()
    _mark_unreached(run, eras, chosen)
    return run


class _Examination:
    """The runs of one client, one after the other."""

    def __init__(self, run_once: RunClient, timeout: float, progress: Progress) -> None:
        self.run = Run("client")
        self.overdue = 0
        """How many runs in a row exceeded their time."""
        self._run_once = run_once
        self._timeout = timeout
        self._progress = progress
        self._chain_ids: dict[str, str] = {}
        """Every chain id that was seen, with the run it was first seen in."""

    def play(
        self, script: ClientScript, case: Case, checks: Sequence[ScriptCheck], judge: Judge
    ) -> None:
        """Run the client in one case, unless that is known to be in vain, and judge it."""
        era = judge.era
        reason = self.run.unspoken.get(era)
        if reason is None and self.overdue >= PATIENCE:
            reason = f"the client did not end in time {PATIENCE} times in a row"
        if reason is not None:
            _leave(judge, case, checks, reason)
            return
        self._progress(f"{script.scenario}/{case.name}, {era}")
        case_run = self._run_case(script, case, era)
        self._note(case_run)
        if not case_run.log.requests:
            reason = _silence(case_run)
            self.run.broke_off(case_run.name, era, reason)
            _leave(judge, case, checks, reason)
            return
        self.run.spoke(era)
        if case_run.end.exit_code is None:
            self.run.broke_off(case_run.name, era, str(case_run.end))
        for check in checks:
            _judge(case_run, check, judge)
        for chain_id in chain_ids(case_run):
            self._chain_ids.setdefault(chain_id, case_run.name)

    def _run_case(self, script: ClientScript, case: Case, era: Era) -> CaseRun:
        context: Json = {
            "name": script.scenario,
            "case": case.name,
            "tool": case.first_call.tool,
            "arguments": case.first_call.arguments,
        }
        if case.elicitation is not None:
            context["elicitation"] = case.elicitation

        def ran(url: str, log: Log, other: Log | None) -> CaseRun:
            end = self._run_once(url, _environment(script, era, context), self._timeout)
            return CaseRun(script, case, era, log, other, end, dict(self._chain_ids))

        with MockServer(script, case, era, patience=self._timeout) as mock:
            if script.other_server is None:
                return ran(mock.url, mock.log, None)
            with MockServer(script, case, era, patience=self._timeout, other=True) as other:
                context["otherServerUrl"] = other.url
                return ran(mock.url, mock.log, other.log)

    def _note(self, case_run: CaseRun) -> None:
        """Note what the report says of every run of the client, even if nothing can be judged."""
        run, end = self.run, case_run.end
        run.outputs.append(
            ClientOutput(
                case_run.script.scenario, case_run.era, case_run.case.name, end.output, end.errors
            )
        )
        self.overdue = self.overdue + 1 if end.exit_code is None else 0
        for request in case_run.log.requests:
            meta = request.params.get("_meta")
            info = request.params.get("clientInfo") or (
                meta.get(CLIENT_INFO_KEY) if isinstance(meta, dict) else None
            )
            if run.name is None and isinstance(info, dict):
                run.name, run.version = str(info.get("name")), str(info.get("version"))


def _environment(script: ClientScript, era: Era, context: Json) -> dict[str, str]:
    """Return what the client is told, in the variables that the official suite uses."""
    return {
        "MCP_CONFORMANCE_SCENARIO": script.scenario,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": era,
        "MCP_CONFORMANCE_CONTEXT": json.dumps(context),
    }


def _silence(case_run: CaseRun) -> str:
    """Say why there is nothing to judge in a case."""
    if case_run.log.refused_method is not None:
        asked = f"it sent {case_run.log.refused_method} of another revision"
    else:
        asked = "it sent no request to the mock server"
    return f"{asked}; {case_run.end}"


def _judge(case_run: CaseRun, check: ScriptCheck, judge: Judge) -> None:
    """Make one check of a case, and record what it found."""
    judge.record(
        check.id,
        judge_check(case_run, check),
        step=case_run.case.name,
        refused=not case_run.end.went_on,
        messages=case_run.log.messages,
    )


def _leave(judge: Judge, case: Case, checks: Sequence[ScriptCheck], reason: str) -> None:
    """Mark the checks of a case that was not run, or came to nothing."""
    for check in checks:
        judge.record(check.id, Untestable(reason), step=case.name, refused=True)


def _mark_unreached(run: Run, eras: Sequence[Era], chosen: frozenset[str]) -> None:
    """Give a reason for each check that got no judgement."""
    judged = {(judgement.check.id, judgement.era) for judgement in run.judgements}
    for era in eras:
        judge = Judge("", era, chosen, Keeper(Redaction()))
        for check in checks_of("client"):
            if (check.id, era) not in judged:
                judge.record(check.id, Untestable("no case of the scripts reaches it"))
        run.judgements += judge.judgements
