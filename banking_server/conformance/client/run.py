"""Judges a client: runs it against the mock server, case by case, and looks at what it did."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol

from jsonschema.validators import Draft202012Validator

from banking_server.chaining import IDENTIFIER
from banking_server.conformance.client.mock_server import Log, MockServer, Operation
from banking_server.conformance.client.script import Case, ClientScript, ScriptCheck
from banking_server.conformance.report.judgement import Judge, Judgement
from banking_server.conformance.requirements import checks_of
from banking_server.conformance.scenario_file import Json
from banking_server.conformance.target.child_process import ChildProcess
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import same
from banking_server.packaged import packaged

PATIENCE: Final = 2
"""Runs in a row that may time out before the rest is left out."""


@dataclass(frozen=True)
class ClientEnd:
    """How one run of the client ended."""

    exit_code: int | None
    """None where it was stopped because its time ran out."""
    output: str
    errors: str

    @property
    def printed(self) -> Json | None:
        """The merged result: the last line of output, where that is a JSON object with content."""
        lines = self.output.strip().splitlines()
        try:
            printed = json.loads(lines[-1]) if lines else None
        except ValueError:
            return None
        if not isinstance(printed, dict) or not isinstance(printed.get("content"), list):
            return None
        return printed

    @property
    def went_on(self) -> bool:
        """Whether it came to its own end: only then does a call that was not made say anything."""
        return self.exit_code == 0

    def __str__(self) -> str:
        if self.exit_code is None:
            ended = "the client did not end in time and was stopped"
        else:
            ended = f"the client exited with code {self.exit_code}"
        lines = self.errors.strip().splitlines()
        return ended + (f"; its last words: {lines[-1][:300]}" if lines else "")


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


@dataclass(frozen=True)
class CaseRun:
    """Everything that one run of the client left to be judged."""

    script: ClientScript
    case: Case
    era: Era
    log: Log
    other: Log | None
    """What the second mock server saw, where the script has one."""
    end: ClientEnd

    @property
    def name(self) -> str:
        """The scenario and the case."""
        return f"{self.script.scenario}/{self.case.name}"


@dataclass
class ClientRun:
    """What came of examining a client."""

    judgements: list[Judgement] = field(default_factory=list[Judgement])
    runs: list[CaseRun] = field(default_factory=list[CaseRun])
    spoken: list[Era] = field(default_factory=list[Era])
    problems: list[str] = field(default_factory=list[str])
    name: str | None = None
    version: str | None = None
    silence: str | None = None
    """Why nothing could be examined at all."""
    chain_ids: dict[str, str] = field(default_factory=dict[str, str])
    """Every chain id that was seen, with the case it was first seen in."""


Progress = Callable[[str], None]


def run_client(
    run_once: RunClient,
    scripts: Sequence[ClientScript],
    eras: Sequence[Era],
    chosen: frozenset[str],
    timeout: float,
    progress: Progress,
) -> ClientRun:
    """Run the client once for each case that a chosen check needs, and judge it.

    Raises CannotStart.
    """
    run = ClientRun()
    unspoken: dict[Era, str] = {}
    for era in eras:
        overdue = 0
        for script in scripts:
            judge = Judge(script.scenario, era, chosen)
            for case in script.cases:
                checks = [
                    check
                    for check in case.checks
                    if era in script.eras_of(case)
                    and era in check.spec_versions
                    and judge.wants(check.id)
                ]
                if not checks:
                    continue
                reason = unspoken.get(era)
                if reason is None and overdue >= PATIENCE:
                    reason = f"the client did not end in time {PATIENCE} times in a row"
                if reason is not None:
                    _leave(judge, case, checks, reason)
                    continue
                progress(f"{script.scenario}/{case.name}, {era}")
                case_run = _run_case(run_once, script, case, era, timeout)
                run.runs.append(case_run)
                overdue = overdue + 1 if case_run.end.exit_code is None else 0
                _note_client(run, case_run)
                if not case_run.log.requests:
                    reason = _silence(case_run)
                    if era not in run.spoken:
                        unspoken[era] = reason
                    else:
                        run.problems.append(f"{case_run.name}, {era}: {reason}")
                    _leave(judge, case, checks, reason)
                    continue
                if era not in run.spoken:
                    run.spoken.append(era)
                if case_run.end.exit_code is None:
                    run.problems.append(f"{case_run.name}, {era}: {case_run.end}")
                _judge_case(run, case_run, checks, judge)
            run.judgements += judge.judgements
    _finish(run, unspoken, chosen, eras)
    return run


def _finish(
    run: ClientRun, unspoken: Mapping[Era, str], chosen: frozenset[str], eras: Sequence[Era]
) -> None:
    if not run.spoken:
        run.silence = "; ".join(f"{era}: {why}" for era, why in unspoken.items())
    else:
        # An era that the client does not speak is no fault where it speaks the other.
        run.judgements = [
            replace(
                judgement,
                untestable=False,
                refused=False,
                seen=f"the client does not speak {judgement.era}: {unspoken[judgement.era]}",
            )
            if judgement.era in unspoken
            else judgement
            for judgement in run.judgements
        ]
    judged = {(judgement.check.id, judgement.era) for judgement in run.judgements}
    for era in eras:
        judge = Judge("", era, chosen)
        for check in checks_of("client"):
            if (check.id, era) not in judged:
                judge.untestable(check.id, "no case of the scripts reaches it")
        run.judgements += judge.judgements


def _leave(judge: Judge, case: Case, checks: Sequence[ScriptCheck], reason: str) -> None:
    for check in checks:
        judge.untestable(check.id, reason, step=case.name, refused=True)


def _silence(case_run: CaseRun) -> str:
    """Say why there is nothing to judge in a case."""
    if case_run.log.refused_method is not None:
        asked = f"it sent {case_run.log.refused_method} of another revision"
    else:
        asked = "it sent no request to the mock server"
    return f"{asked}; {case_run.end}"


def _run_case(
    run_once: RunClient, script: ClientScript, case: Case, era: Era, timeout: float
) -> CaseRun:
    context: Json = {
        "name": script.scenario,
        "case": case.name,
        "tool": case.first_call.tool,
        "arguments": case.first_call.arguments,
    }
    if case.elicitation is not None:
        context["elicitation"] = case.elicitation
    with MockServer(script, case, era, patience=timeout) as mock:
        if script.other_server is None:
            end = run_once(mock.url, _environment(script, era, context), timeout)
            return CaseRun(script, case, era, mock.log, None, end)
        with MockServer(script, case, era, patience=timeout, other=True) as other:
            context["otherServerUrl"] = other.url
            end = run_once(mock.url, _environment(script, era, context), timeout)
            return CaseRun(script, case, era, mock.log, other.log, end)


def _environment(script: ClientScript, era: Era, context: Json) -> dict[str, str]:
    """Return what the client is told, as the official suite's clients are."""
    return {
        "MCP_CONFORMANCE_SCENARIO": script.scenario,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": era,
        "MCP_CONFORMANCE_CONTEXT": json.dumps(context),
    }


def _note_client(run: ClientRun, case_run: CaseRun) -> None:
    for request in case_run.log.requests:
        meta = request.params.get("_meta")
        info = request.params.get("clientInfo") or (
            meta.get("io.modelcontextprotocol/clientInfo") if isinstance(meta, dict) else None
        )
        if run.name is None and isinstance(info, dict):
            run.name, run.version = str(info.get("name")), str(info.get("version"))


# Judging one case


@dataclass(frozen=True)
class _Finding:
    """What a judgement compares, and whether it holds."""

    holds: bool
    expected: str
    seen: str


@dataclass(frozen=True)
class _NotTestable:
    """Why nothing can be said."""

    reason: str
    applies: bool = True


_Judged = _Finding | _NotTestable


def _judge_case(
    run: ClientRun, case_run: CaseRun, checks: Sequence[ScriptCheck], judge: Judge
) -> None:
    case, log, end = case_run.case, case_run.log, case_run.end
    lacking = [
        capability
        for capability in case_run.script.requires_client
        if not any(capability in declared for declared in log.client_capabilities())
    ]
    for check in checks:
        witness = _Witness(case_run, check)
        judged: _Judged
        if lacking:
            judged = _NotTestable(f"the client does not declare {lacking[0]}", applies=False)
        elif (problem := witness.problem()) is not None:
            judged = _NotTestable(problem)
        else:
            judged = _KINDS[check.kind](run, case_run, check)
        if isinstance(judged, _Finding):
            judge.found(
                check.id,
                judged.holds,
                step=case.name,
                expected=judged.expected,
                seen=judged.seen,
                messages=log.messages,
            )
        elif judged.applies:
            judge.untestable(
                check.id,
                judged.reason,
                step=case.name,
                refused=not end.went_on,
                messages=log.messages,
            )
        else:
            judge.not_applicable(check.id, judged.reason, step=case.name)
    _note_chain_ids(run, case_run)


@dataclass(frozen=True)
class _Witness:
    """The call that shows that what is being judged was delivered to the client."""

    case_run: CaseRun
    check: ScriptCheck

    def problem(self) -> str | None:
        """Say why the witness is missing, or return None where it is there."""
        operations = self.case_run.log.operations
        for number in range(1, self.check.witness + 1):
            expected = self.case_run.case.expect.calls[number - 1]
            if len(operations) < number or operations[number - 1].tool != expected.tool:
                return (
                    f"call {number} ({expected.tool}) was never made, so nothing can be said about "
                    f"what comes after it; {_calls(operations)}; {self.case_run.end}"
                )
            if not operations[number - 1].answered:
                return f"call {number} ({expected.tool}) was never answered; {self.case_run.end}"
        return None


def _calls(operations: Sequence[Operation]) -> str:
    """Name the calls that were made."""
    shown = ", ".join(f"{made.tool} {_show(made.arguments)}" for made in operations[:8])
    more = f" and {len(operations) - 8} more" if len(operations) > 8 else ""
    return f"{len(operations)} calls: {shown}{more}" if operations else "no calls"


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def _made(case_run: CaseRun, number: int) -> Operation | _Judged:
    """Return the expected call `number`, or the judgement that it was not made."""
    expected = case_run.case.expect.calls[number - 1]
    operations = case_run.log.operations
    if len(operations) >= number and operations[number - 1].tool == expected.tool:
        return operations[number - 1]
    if case_run.end.exit_code is None:
        return _NotTestable(str(case_run.end))
    return _Finding(
        False,
        f"call {number}: {expected.tool} {_show(expected.arguments)}",
        f"{_calls(operations)}; {case_run.end}",
    )


def _called(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    number = check.call or 1
    made = _made(case_run, number)
    if not isinstance(made, Operation):
        return made
    return _Finding(True, f"call {number}: {made.tool}", _calls(case_run.log.operations))


def _arguments(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    number = check.call or 1
    made = _made(case_run, number)
    if not isinstance(made, Operation):
        return made
    expected = case_run.case.expect.calls[number - 1].arguments
    return _Finding(
        same(made.arguments, expected),
        f"call {number}: {made.tool} with exactly {_show(expected)}",
        f"{made.tool} with {_show(made.arguments)}",
    )


def _silent_evidence(case_run: CaseRun) -> _NotTestable | None:
    """What is not done says something only of a client that came to its own end."""
    if case_run.end.went_on:
        return None
    return _NotTestable(f"{case_run.end}, so what it did not do says nothing")


def _not_called(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    log = case_run.log
    where = ""
    if check.other_server:
        if case_run.other is None:
            return _NotTestable("the script has no other server")
        if not case_run.other.requests:
            return _NotTestable("the client never connected to the other server", applies=False)
        log, where = case_run.other, " on the other server"
    made = [
        operation
        for operation in log.operations
        if operation.tool == check.tool
        and (check.arguments is None or same(check.arguments, operation.arguments))
    ]
    allowed = check.at_most or 0
    if len(made) <= allowed and (silent := _silent_evidence(case_run)) is not None:
        return silent
    return _Finding(
        len(made) <= allowed,
        f"{'no call' if not allowed else f'at most {allowed} calls'} of {check.tool}{where}",
        _calls(log.operations),
    )


def _calls_end(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    expected = check.witness
    made = case_run.log.operations
    if len(made) <= expected and (silent := _silent_evidence(case_run)) is not None:
        return silent
    return _Finding(len(made) <= expected, f"no call after call {expected}", _calls(made))


def _call_count(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    count = len(case_run.log.operations)
    most = check.exactly or check.at_most or 0
    if count <= most and (silent := _silent_evidence(case_run)) is not None:
        return silent
    holds = count == most if check.exactly else count <= most
    return _Finding(
        holds, f"{'exactly' if check.exactly else 'at most'} {most} calls", f"{count} calls"
    )


def _listed_again(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    after = check.after_call or 1
    listings = [request for request in case_run.log.requests if request.method == "tools/list"]
    again = any(request.calls_answered >= after for request in listings)
    if not again and (silent := _silent_evidence(case_run)) is not None:
        return silent
    return _Finding(
        again,
        f"tools/list once more after call {after}",
        f"{len(listings)} tools/list requests, {'one' if again else 'none'} of them after it",
    )


def _not_fetched(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    fetched = check.path in case_run.log.fetched
    if not fetched and (silent := _silent_evidence(case_run)) is not None:
        return silent
    return _Finding(
        not fetched, f"no GET of {check.path}", "it was fetched" if fetched else "not fetched"
    )


def _declared(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    declarations = case_run.log.client_capabilities()
    requests = [request.method for request in case_run.log.requests]
    if check.place == "initialize":
        where = "capabilities.extensions or capabilities.experimental of initialize"
        holds = any(_settings_in(declared) for declared in declarations)
        return _Finding(holds, f"{IDENTIFIER} in {where}", f"capabilities {_show(declarations)}")
    declaring = sum(bool(_settings_in(declared)[:1]) for declared in declarations)
    return _Finding(
        declaring == len(requests),
        f"{IDENTIFIER} in clientCapabilities.extensions of every request's _meta",
        f"in {declaring} of {len(requests)} requests",
    )


def _settings_in(capabilities: Json) -> list[Any]:
    """Return the settings objects that a client's capabilities hold."""
    places = [capabilities.get("extensions"), capabilities.get("experimental")]
    return [
        place[IDENTIFIER] for place in places if isinstance(place, dict) and IDENTIFIER in place
    ]


def _settings_valid(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    found = [
        settings
        for declared in case_run.log.client_capabilities()
        for settings in _settings_in(declared)
    ]
    if not found:
        return _NotTestable("the client declares no settings", applies=False)
    wrong = [settings for settings in found if not _schema("settings").is_valid(settings)]
    return _Finding(
        not wrong,
        "a settings object whose version, if there is one, is an integer of at least 1",
        _show(wrong[0] if wrong else found[0]),
    )


def _provenance_of(operation: Operation) -> Any:
    return operation.meta.get(IDENTIFIER)


def _provenance_present(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    follow_ups = case_run.log.operations[1:]
    without = [made.number for made in follow_ups if IDENTIFIER not in made.meta]
    return _Finding(
        not without,
        f"_meta.{IDENTIFIER} on every follow-up call",
        f"none on call {', '.join(map(str, without))}" if without else "on all of them",
    )


_SomeProvenance = Callable[[list[tuple[Operation, Json]]], _Finding]


def _with_provenance(case_run: CaseRun, compare: _SomeProvenance) -> _Judged:
    """Compare the provenance of all calls that carry one, if any follow-up does."""
    carried = [
        (made, provenance)
        for made in case_run.log.operations
        if isinstance(provenance := _provenance_of(made), dict)
    ]
    if not any(made.number > 1 for made, _ in carried):
        return _NotTestable("no follow-up call carries provenance that is an object")
    return compare(carried)


def _provenance_well_formed(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    carried = [made for made in case_run.log.operations if IDENTIFIER in made.meta]
    if not any(made.number > 1 for made in carried):
        return _NotTestable("no follow-up call carries provenance")
    wrong = [made for made in carried if not _schema("provenance").is_valid(_provenance_of(made))]
    shown = wrong[0] if wrong else carried[-1]
    return _Finding(
        not wrong,
        "an object with chainId (1 to 128 characters), level (an integer of at least 1) and, above "
        "level 1 only, previousTool",
        f"call {shown.number}: {_show(_provenance_of(shown))}",
    )


def _provenance_one_chain_id(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    def compare(carried: list[tuple[Operation, Json]]) -> _Finding:
        ids = [_show(provenance.get("chainId")) for _, provenance in carried]
        return _Finding(len(set(ids)) == 1, "one chainId in the whole chain", ", ".join(ids))

    return _with_provenance(case_run, compare)


def _provenance_new_chain_id(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    def compare(carried: list[tuple[Operation, Json]]) -> _Finding:
        ids = {_show(provenance.get("chainId")) for _, provenance in carried}
        known = sorted(ids & run.chain_ids.keys())
        seen = f"{known[0]}, as in {run.chain_ids[known[0]]}" if known else ", ".join(sorted(ids))
        return _Finding(not known, "a chainId that no other chain had", seen)

    judged = _with_provenance(case_run, compare)
    if isinstance(judged, _Finding) and not run.chain_ids:
        return _NotTestable("this is the first chain of the run", applies=False)
    return judged


def _note_chain_ids(run: ClientRun, case_run: CaseRun) -> None:
    for made in case_run.log.operations:
        provenance = _provenance_of(made)
        if isinstance(provenance, dict) and isinstance(provenance.get("chainId"), str):
            run.chain_ids.setdefault(_show(provenance["chainId"]), case_run.name)


def _provenance_level(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    def compare(carried: list[tuple[Operation, Json]]) -> _Finding:
        levels = [(made.number, provenance.get("level")) for made, provenance in carried]
        return _Finding(
            all(same(number, level) for number, level in levels),
            "level equal to the number of the call",
            ", ".join(f"call {number}: level {_show(level)}" for number, level in levels),
        )

    return _with_provenance(case_run, compare)


def _provenance_previous_tool(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    def compare(carried: list[tuple[Operation, Json]]) -> _Finding:
        operations = case_run.log.operations
        pairs = [
            (operations[made.number - 2].tool, provenance.get("previousTool"))
            for made, provenance in carried
            if made.number > 1
        ]
        return _Finding(
            all(named == tool for tool, named in pairs),
            "previousTool " + ", ".join(tool for tool, _ in pairs),
            ", ".join(_show(named) for _, named in pairs),
        )

    return _with_provenance(case_run, compare)


def _printed(case_run: CaseRun) -> Json | _NotTestable:
    made = [operation.tool for operation in case_run.log.operations]
    if made != [call.tool for call in case_run.case.expect.calls]:
        # What it prints then belongs to another course, which other checks judge.
        return _NotTestable("the client made other calls than expected", applies=False)
    printed = case_run.end.printed
    if printed is not None:
        return printed
    return _NotTestable(
        "the client does not print the merged result as JSON on its last line of output"
        + ("" if case_run.end.exit_code == 0 else f"; {case_run.end}")
    )


def _printed_content(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    printed = _printed(case_run)
    if isinstance(printed, _NotTestable):
        return printed
    seen = [_reduced(item) for item in printed["content"] if not _for_assistant_alone(item)]
    wanted = [_reduced(item) for item in case_run.case.expect.content or []]
    return _Finding(
        same(seen, wanted), f"content in this order: {_show(wanted)}", f"content: {_show(seen)}"
    )


def _reduced(item: Any) -> Any:
    """Reduce a content item to what every client keeps of it."""
    if not isinstance(item, dict):
        return item
    kept = {name: item[name] for name in ("type", "text", "annotations") if item.get(name)}
    if isinstance(annotations := kept.get("annotations"), dict):
        # Some clients write out members that the server left out.
        kept["annotations"] = {name: value for name, value in annotations.items() if value}
    return kept


def _for_assistant_alone(item: Any) -> bool:
    annotations = item.get("annotations") if isinstance(item, dict) else None
    return isinstance(annotations, dict) and annotations.get("audience") == ["assistant"]


def _printed_content_without(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    printed = _printed(case_run)
    if isinstance(printed, _NotTestable):
        return printed
    texts = [item.get("text") for item in printed["content"] if isinstance(item, dict)]
    return _Finding(
        check.text not in texts, f"no content item with the text {_show(check.text)}", _show(texts)
    )


def _printed_outcome(run: ClientRun, case_run: CaseRun, check: ScriptCheck) -> _Judged:
    printed = _printed(case_run)
    if isinstance(printed, _NotTestable):
        return printed
    if "outcome" not in printed:
        return _NotTestable("the printed result has no outcome")
    expected = case_run.case.expect.outcome
    return _Finding(
        printed["outcome"] == expected, f"outcome {expected}", f"outcome {printed['outcome']}"
    )


_KINDS: Final[Mapping[str, Callable[[ClientRun, CaseRun, ScriptCheck], _Judged]]] = {
    "called": _called,
    "arguments": _arguments,
    "not_called": _not_called,
    "calls_end": _calls_end,
    "call_count": _call_count,
    "listed_again": _listed_again,
    "not_fetched": _not_fetched,
    "declared": _declared,
    "settings_valid": _settings_valid,
    "provenance_present": _provenance_present,
    "provenance_well_formed": _provenance_well_formed,
    "provenance_one_chain_id": _provenance_one_chain_id,
    "provenance_new_chain_id": _provenance_new_chain_id,
    "provenance_level": _provenance_level,
    "provenance_previous_tool": _provenance_previous_tool,
    "printed_content": _printed_content,
    "printed_content_without": _printed_content_without,
    "printed_outcome": _printed_outcome,
}


@cache
def _schema(name: str) -> Draft202012Validator:
    schema = json.loads((packaged("specs") / "next-tool.schema.json").read_text("utf-8"))
    return Draft202012Validator({**schema["$defs"][name], "$defs": schema["$defs"]})
