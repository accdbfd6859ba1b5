"""What the client handed on in the end: the merged result that it printed.

What it should be is read off the calls that were made and what the mock server answered.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.checks.registry import Kind, kind
from banking_server.conformance.client.evidence import CaseRun, result_in
from banking_server.conformance.client.mock_server import Operation
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from banking_server.conformance.values import same, shown


def _printed(case_run: CaseRun) -> Json | Untestable:
    """Return what the client printed, or why there is nothing to judge."""
    printed = case_run.end.printed
    if printed is not None:
        return printed
    return Untestable(
        "the client does not print the merged result as JSON on its last line of output"
        + ("" if case_run.end.exit_code == 0 else f"; {case_run.end}")
    )


Compare = Callable[[CaseRun, ScriptCheck, Json], Judged]


def _of_printed(compare: Compare) -> Kind:
    """Have a printed result judged, if there is one."""

    @wraps(compare)
    def judge(case_run: CaseRun, check: ScriptCheck) -> Judged:
        printed = _printed(case_run)
        return compare(case_run, check, printed) if isinstance(printed, dict) else printed

    return judge


def _of_whole(compare: Compare) -> Kind:
    """Have a printed result judged that is whole: `isError` is the sign of it."""

    @wraps(compare)
    def judge(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
        if "isError" not in printed:
            return NotApplicable("the client prints content and outcome only, no isError")
        if not _results(case_run):
            return Untestable("no call brought a result")
        return compare(case_run, check, printed)

    return _of_printed(judge)


@kind("printed_content")
@_of_printed
def printed_content(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The content of every result is in the printed `content`, in the order of the calls."""
    wanted = [item for call in case_run.log.operations for item in _content(call)]
    missing = _first_missing(wanted, printed["content"])
    return Finding(
        missing is None,
        expected=f"content in this order: {shown(wanted)}",
        seen=f"content: {shown(printed['content'])}"
        if missing is None
        else f"{shown(missing)} is not at its place in {shown(printed['content'])}",
    )


@kind("printed_without")
@_of_printed
def printed_without(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """Neither the printed content nor the structured content has the text `text` anywhere."""
    handed_on = {name: printed.get(name) for name in ("content", "structuredContent")}
    return Finding(
        json.dumps(check.text)[1:-1] not in json.dumps(handed_on),
        expected=f"nothing with {shown(check.text)}",
        seen=shown(handed_on),
    )


@kind("printed_outcome")
def printed_outcome(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The printed `outcome` is the expected one."""
    made = [call.tool for call in case_run.log.operations]
    if made != [call.tool for call in case_run.case.expect.calls]:
        return NotApplicable("the client made other calls than expected")
    printed = _printed(case_run)
    if not isinstance(printed, dict):
        return printed
    if "outcome" not in printed:
        return Untestable("the printed result has no outcome")
    expected, seen = case_run.case.expect.outcome, printed["outcome"]
    if case_run.case.context.cancel and seen != expected and not case_run.log.waits_for_cancel:
        return NotApplicable("the client does not use the cancelUrl of the context")
    if case_run.ended_at_own_limit:
        return NotApplicable("the client ended the chain at its limit")
    if seen == "declined" != expected:
        return NotApplicable("the client declines the call: by its user, or by its own rules")
    return Finding(seen == expected, expected=f"outcome {expected}", seen=f"outcome {seen}")


@kind("printed_one_result")
@_of_printed
def printed_one_result(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The client printed one result, with content of the first step and of the last."""
    results = [line for line in case_run.end.output.splitlines() if result_in(line) is not None]
    ends = [_content(case_run.log.operations[place]) for place in (0, -1)]
    whole = all(
        any(_has(seen, item) for seen in printed["content"] for item in end) for end in ends
    )
    return Finding(
        len(results) == 1 and whole,
        expected="one result, with content of the first step and of the last",
        seen=f"{len(results)} results" + ("" if whole else ", the last one of some steps only"),
    )


@kind("printed_is_error")
@_of_whole
def printed_is_error(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `isError` is true if a result had it, or a follow-up call brought none."""
    lost = any(each.fates[-1] == "unknown" for each in _follow_ups(case_run))
    wanted = lost or any(result.get("isError") is True for result in _results(case_run))
    return Finding(
        bool(printed["isError"]) is wanted,
        expected=f"isError {shown(wanted)}",
        seen=f"isError {shown(printed['isError'])}",
    )


@kind("printed_structured_content")
@_of_whole
def printed_structured_content(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `structuredContent` is absent, or that of the first call, with `followUps`."""
    first = _results(case_run)[0].get("structuredContent") or {}
    wanted = {name: value for name, value in first.items() if name != "nextStep"}
    seen = printed.get("structuredContent")
    told = seen.get("followUps", []) if isinstance(seen, dict) else []
    unnamed = _unnamed(case_run, told if isinstance(told, list) else [])
    kept = same(_without(_without(seen, "nextStep"), "followUps"), wanted)
    return Finding(
        seen is None or (kept and not unnamed),
        expected=f"structuredContent {shown(wanted)}, with each follow-up call named in "
        "followUps; or none",
        seen=f"structuredContent {shown(seen)}",
    )


@kind("printed_no_directive")
@_of_whole
def printed_no_directive(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `_meta` has no `nextTool`, and `content` no words about one not followed."""
    meta = printed.get("_meta")
    words = [
        item["text"]
        for item in _results(case_run)[-1].get("content", [])
        if IDENTIFIER in item.get("_meta", {})
    ]
    handed_on = [text for text in words if text in _texts(printed)]
    return Finding(
        not handed_on and not (isinstance(meta, dict) and "nextTool" in meta),
        expected="no nextTool in _meta, and no words about one in content",
        seen=f"text {shown(handed_on[0])}" if handed_on else f"_meta {shown(meta)}",
    )


@kind("printed_follow_ups")
@_of_whole
def printed_follow_ups(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `followUps` have each follow-up call with its fate, and a text names it."""
    if not isinstance(printed.get("followUps"), list):
        return NotApplicable("the client does not print followUps")
    wanted = _follow_ups(case_run)
    unnamed = _unnamed(case_run, _texts(printed))
    mistaken = _told_as_another(case_run) if _fits(case_run) else None
    return Finding(
        _fits(case_run) and not unnamed and mistaken is None,
        expected="; ".join(f"{call.tool}: {' or '.join(call.fates)}" for call in wanted)
        + f"; and a text that names {', '.join(_unnamed(case_run, []))}",
        seen=f"followUps {shown(printed['followUps'])}"
        + (f"; no text names {', '.join(unnamed)}" if unnamed else "")
        + (f"; no text says that it is {mistaken}" if mistaken else ""),
    )


def _texts(printed: Json) -> list[str]:
    """Return the texts of the printed content."""
    found = [item.get("text") for item in printed["content"] if isinstance(item, dict)]
    return [text for text in found if isinstance(text, str)]


def _results(case_run: CaseRun) -> list[Json]:
    return [call.result for call in case_run.log.operations if call.result is not None]


def _content(call: Operation) -> list[Json]:
    """Return the content of the result of a call, without what is for the assistant alone."""
    return [
        item
        for item in (call.result or {}).get("content", [])
        if item.get("annotations", {}).get("audience") != ["assistant"]
    ]


LONGEST: Final = 128
"""Characters of a tool's name above which a client cuts it (TC-C-53)."""

NAME: Final = 100
"""Characters of a tool's name that have to be told. A client may cut it, at 128 or before."""


@dataclass(frozen=True)
class _FollowUp:
    """A call that a directive asked for."""

    tool: str
    arguments: Json
    fates: tuple[str, ...]
    """What may be said to have become of it."""
    to_be_named: bool = True
    """Whether a model has to be told its tool: the client found it in the list (TC-C-33)."""

    def in_words(self, with_arguments: bool) -> str:
        name = self.tool
        if len(name) > LONGEST:
            name = (
                f"{name[:NAME]}… (a name of {len(name)} characters is to be cut to {LONGEST}, not "
                f"left out; a text is looked for that has the first {NAME} of them)"
            )
        return f"{name} with {shown(self.arguments)}" if with_arguments else name

    def is_named_in(self, text: str, with_arguments: bool) -> bool:
        """Whether a text has the name of its tool, and the values of its arguments if need be."""
        values = _plain_values(self.arguments) if with_arguments else []
        name = json.dumps(self.tool, ensure_ascii=False)[1:-1]
        # A long name is cut (TC-C-53), wherever the client cuts it.
        named = name[:NAME] in text or self.tool[:NAME] in text
        return named and all(part in text for part in values)


def _fits(case_run: CaseRun) -> bool:
    """Whether the printed `followUps` have each follow-up call with what became of it."""
    wanted, named = _follow_ups(case_run), (case_run.end.printed or {}).get("followUps")
    if not isinstance(named, list) or len(named) != len(wanted):
        return False
    return all(
        isinstance(each, dict)
        and each.get("tool", None if call.to_be_named else call.tool) == call.tool
        and each.get("fate") in call.fates
        for each, call in zip(named, wanted, strict=True)
    )


def _told_as_another(case_run: CaseRun) -> str | None:
    """Return the fate that a model is told of in no words but those for other fates, if any.

    The words of other cases are compared too, since no chain has every fate. Names of tools and
    values of arguments are left out of them.
    """
    runs = [run for run in case_run.others.values() if run.log.operations and _fits(run)]
    for fate in ("unknown", "not_made"):
        if not any(fate in call.fates for call in _follow_ups(case_run)):
            continue
        elsewhere: set[str] = set()
        for run in runs:
            if not any(fate in call.fates for call in _follow_ups(run)):
                elsewhere |= _own_words(run)
        if _own_words(case_run) <= elsewhere:
            return fate
    return None


def _own_words(case_run: CaseRun) -> set[str]:
    """Return the texts that the client added to those of the server, without names and values."""
    items = [item for result in _results(case_run) for item in result.get("content", [])]
    said = [item.get("text") for item in items]
    names = {
        part
        for call in _follow_ups(case_run)
        for part in (call.tool, *_plain_values(call.arguments))
        if part
    }
    words = set[str]()
    for text in _texts(case_run.end.printed or {"content": []}):
        if text not in said:
            for name in sorted(names, key=len, reverse=True):
                text = text.replace(json.dumps(name)[1:-1], "…").replace(name, "…")
            words.add(text)
    return words


def _unnamed(case_run: CaseRun, texts: list[Any]) -> list[str]:
    """Return the follow-up calls that none of the texts names."""
    wanted, first = _follow_ups(case_run), case_run.log.operations[0]
    counts = Counter([first.tool, *(each.tool for each in wanted)])
    return [
        each.in_words(counts[each.tool] > 1)
        for each in wanted
        if each.to_be_named
        and not any(
            each.is_named_in(text, counts[each.tool] > 1) for text in texts if isinstance(text, str)
        )
    ]


def _plain_values(value: Any) -> list[str]:
    """Return every value of some arguments that has no parts, as a text would have it."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [plain for item in value for plain in _plain_values(item)]
    return [value if isinstance(value, str) else json.dumps(value)]


def _follow_ups(case_run: CaseRun) -> list[_FollowUp]:
    """Return each follow-up call, and what may be said to have become of it."""
    calls = case_run.log.operations
    named: list[_FollowUp] = []
    for before, call in itertools.pairwise(calls):
        again = call.tool == before.tool and same(call.arguments, before.arguments)
        # A call that is sent again is one call, and either answer says what became of it.
        fates = named.pop().fates if again and named else ()
        fate = "unknown" if call.result is None else "made"
        fates = tuple(dict.fromkeys((*fates, fate)))
        named.append(_FollowUp(call.tool, call.arguments, fates))
    directive = ((calls[-1].result or {}).get("_meta") or {}).get("nextTool")
    ended = case_run.case.expect.outcome not in ("completed", "malformed_directive")
    if ended and isinstance(directive, dict):
        arguments = directive.get("arguments", {})
        looked_up = case_run.case.expect.outcome not in ("unknown_tool", "limit_reached")
        named.append(_FollowUp(directive["tool"], arguments, ("not_made",), looked_up))
    return named


def _first_missing(wanted: list[Json], printed: list[Any]) -> Json | None:
    """Return the first wanted item that is not printed at its place, or None if all are."""
    left = iter(printed)
    for item in wanted:
        if not any(_has(seen, item) for seen in left):
            return item
    return None


def _has(seen: Any, wanted: Any) -> bool:
    """Say whether a printed value has all that the server sent, save for `_meta`.

    Some clients write out members that the server left out.
    """
    if isinstance(wanted, dict) and isinstance(seen, dict):
        return all(_has(seen.get(name), wanted[name]) for name in wanted if name != "_meta")
    return same(seen, wanted)


def _without(value: Any, name: str) -> Any:
    return {key: value[key] for key in value if key != name} if isinstance(value, dict) else value
