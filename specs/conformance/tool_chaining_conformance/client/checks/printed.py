"""Checks of the client's printed merged result.

The expected result follows from the client's calls and the mock server's results.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from tool_chaining_conformance.client.checks.registry import Kind, kind
from tool_chaining_conformance.client.evidence import CaseRun, result_in
from tool_chaining_conformance.client.mock_server import Operation
from tool_chaining_conformance.client.script import ScriptCheck
from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.names import META_KEY
from tool_chaining_conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from tool_chaining_conformance.server.checks.target import hidden_from_model
from tool_chaining_conformance.server.reading import (
    carries_directive,
    is_marked,
    objects_in,
    without_next_step,
)
from tool_chaining_conformance.values import quote, same

Compare = Callable[[CaseRun, ScriptCheck, Json], Judged]


def _of_printed(compare: Compare) -> Kind:
    """Return a check that is untestable if the client printed no result."""

    @wraps(compare)
    def judge(case_run: CaseRun, check: ScriptCheck) -> Judged:
        if (printed := case_run.end.printed) is not None:
            return compare(case_run, check, printed)
        return Untestable(
            "the client does not print the merged result as JSON on its last line of output"
            + ("" if case_run.end.exit_code == 0 else f"; {case_run.end}")
        )

    return judge


def _of_whole(compare: Compare) -> Kind:
    """Return a check that applies only to a whole merged result: one that has `isError`."""

    @wraps(compare)
    def judge(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
        if "isError" not in printed:
            return NotApplicable("the client prints content and outcome only, no isError")
        if not _results(case_run):
            return Untestable("no call had a result")
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
        expected=f"content in this order: {quote(wanted)}",
        seen=f"content: {quote(printed['content'])}"
        if missing is None
        else f"{quote(missing)} is missing, or in a wrong place, in {quote(printed['content'])}",
    )


@kind("printed_without")
@_of_printed
def printed_without(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """Neither the printed content nor the structured content contains the text `text`.

    A suggestion may contain it.
    """
    content = [item for item in printed["content"] if not _is_suggestion(case_run, item)]
    forwarded = {"content": content, "structuredContent": printed.get("structuredContent")}
    return Finding(
        json.dumps(check.text)[1:-1] not in json.dumps(forwarded),
        expected=f"content and structuredContent without {quote(check.text)}",
        seen=quote(forwarded),
    )


@kind("printed_one_result")
@_of_printed
def printed_one_result(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The client printed one result, with content of the first call and of the last."""
    results = [line for line in case_run.end.output.split("\n") if result_in(line) is not None]
    ends = [_content(case_run.log.operations[place]) for place in (0, -1)]
    whole = all(
        any(_has(seen, item) for seen in printed["content"] for item in end) for end in ends
    )
    return Finding(
        len(results) == 1 and whole,
        expected="one result, with content of the first call and of the last",
        seen=f"{len(results)} results" + ("" if whole else ", the last one incomplete"),
    )


@kind("printed_is_error")
@_of_whole
def printed_is_error(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `isError` is true if a result has it, or a follow-up call had no result."""
    lost = any(each.status == "unknown" for each in _follow_ups(case_run))
    wanted = lost or any(result.get("isError") is True for result in _results(case_run))
    return Finding(
        printed["isError"] is wanted,
        expected=f"isError {quote(wanted)}",
        seen=f"isError {quote(printed['isError'])}",
    )


@kind("printed_structured_content")
@_of_whole
def printed_structured_content(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `structuredContent` is that of the first call, with `followUps` if it may."""
    result = _results(case_run)[0]
    directed = carries_directive(result)
    first, seen = result.get("structuredContent"), printed.get("structuredContent")
    wanted = _without_words(result)
    if not directed or not isinstance(first, dict) or "followUps" in first:
        return Finding(
            same(seen, wanted),
            expected=f"structuredContent {quote(wanted)}, and no more",
            seen=f"structuredContent {quote(seen)}",
        )
    own = dict(within(printed, "structuredContent"))
    told, texts = own.pop("followUps", None), _told_in_structured(printed)
    lists = isinstance(told, list) and texts == told and not _unnamed(case_run, texts)
    ambiguous = _ambiguous_status(case_run, _told_in_structured) if lists else None
    return Finding(
        lists and ambiguous is None and same(own, wanted),
        expected=f"{quote(wanted)} with an array followUps of texts that name each call",
        seen=f"structuredContent {quote(seen)}"
        + (f"; no text of followUps is for {ambiguous} alone" if ambiguous else ""),
    )


@kind("printed_quotes")
@_of_whole
def printed_quotes(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """`followUps` in the printed `structuredContent` quotes each later text as a JSON string."""
    told = _told_in_structured(printed)
    quoted = [string for text in told for string in _strings_in(text)]
    bare = [JSON_STRING.sub("", text) for text in told]
    later = [item["text"] for result in _results(case_run)[1:] for item in result["content"]]
    unquoted = [
        text
        for text in later
        # A client may quote the text, or the whole result as JSON.
        if not any(text in string or json.dumps(text)[1:-1] in string for string in quoted)
    ]
    loose = [line for text in later for line in text.splitlines() if any(line in b for b in bare)]
    return Finding(
        not unquoted and not loose,
        expected=f"followUps with {', '.join(map(quote, later))} in JSON strings alone",
        seen=f"followUps {quote(told)}" + (f"; {quote(loose[0])} stands outside" if loose else ""),
    )


def _strings_in(text: str) -> Iterator[str]:
    """Yield what each string of JSON in a text says."""
    for found in JSON_STRING.findall(text):
        with suppress(ValueError):
            yield json.loads(found)


JSON_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
"""A string of JSON, with its quotation marks."""


@kind("printed_no_directive")
@_of_whole
def printed_no_directive(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `_meta` has no `nextTool`, and `content` no words, except one suggestion."""
    meta = printed.get("_meta")
    sent = [item for item in _results(case_run)[-1].get("content", []) if is_marked(item)]
    items = [item for item in printed["content"] if isinstance(item, dict)]
    suggestions = [item for item in items if _is_suggestion(case_run, item)]
    words = [
        item
        for item in items
        if item not in suggestions
        and (is_marked(item) or item.get("text") in [each.get("text", ()) for each in sent])
    ] + suggestions[1:]
    return Finding(
        not words and "nextTool" not in within(meta),
        expected="no nextTool in _meta, and no item in content that repeats a directive",
        seen=f"item {quote(words[0])}" if words else f"_meta {quote(meta)}",
    )


def _is_suggestion(case_run: CaseRun, item: Any) -> bool:
    """Return whether a printed item may be a suggestion: it has the mark, the chain ended at the
    limit or because nobody could be asked, and the model may call the tool."""
    case, context = case_run.case, case_run.case.context
    # A case with further calls leaves the tool in doubt.
    nobody = context.consent == "nobody" and not context.further_calls
    ended = case.expect.outcome == "limit_reached" or (nobody and case.expect.outcome == "declined")
    last = (_results(case_run) or [{}])[-1]
    directive = within(last, "_meta", META_KEY)
    tools = [tool.to_wire() for tool in case_run.script.tools]
    denied = context.denied_tools or ()
    offered = [tool["name"] for tool in tools if not hidden_from_model(tool)]
    allowed = directive.get("tool") in [name for name in offered if name not in denied]
    return is_marked(item) and ended and allowed


@kind("printed_unchanged")
@_of_whole
def printed_unchanged(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed result is the last result of the server, as the same JSON value."""
    last = _results(case_run)[-1]
    absent: Json = {"isError": False, "structuredContent": None, "_meta": {}}
    wanted, seen = (
        {name: each.get(name) or absent.get(name) for name in ("content", *absent)}
        for each in (last, printed)
    )
    return Finding(same(seen, wanted), expected=quote(wanted), seen=quote(seen))


@kind("printed_later_data")
@_of_printed
def printed_later_data(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The structured content of each later call is in a printed text that the model gets."""
    shown = _shown(printed)
    later = [_data(result) for result in _results(case_run)[1:]]
    missing = [data for data in later if data and not any(_contains(each, data) for each in shown)]
    return Finding(
        not missing,
        expected=f"texts for the model with {', '.join(map(quote, filter(None, later)))} as JSON",
        seen=f"content {quote(printed['content'])}",
    )


def _shown(printed: Json) -> list[Any]:
    """Return each JSON object in the printed texts that the model gets."""
    return [
        found
        for item in printed["content"]
        if isinstance(item, dict) and within(item, "annotations").get("audience") != ["user"]
        for found in objects_in(str(item.get("text", "")))
    ]


def _data(result: Json) -> Json:
    """Return the structured content of a result without the words, if it is an object."""
    return within({"data": _without_words(result)}, "data")


def _without_words(result: Json) -> Any:
    """Return the structured content of a result without the words."""
    data = result.get("structuredContent")
    if carries_directive(result) and isinstance(data, dict):
        return without_next_step(data)
    return data


def _contains(value: Any, wanted: Json) -> bool:
    """Return whether a JSON value, or a part of it, has these members."""
    if isinstance(value, list):
        return any(_contains(part, wanted) for part in value)
    if not isinstance(value, dict):
        return False
    here = all(name in value and same(value[name], part) for name, part in wanted.items())
    return here or any(_contains(part, wanted) for part in value.values())


@kind("printed_follow_ups")
@_of_whole
def printed_follow_ups(case_run: CaseRun, check: ScriptCheck, printed: Json) -> Judged:
    """The printed `followUps` lists each follow-up call with its status, and a text names it."""
    if not isinstance(printed.get("followUps"), list):
        return NotApplicable("the client does not print followUps")
    wanted = _follow_ups(case_run)
    unnamed = _unnamed(case_run, _texts(printed))
    ambiguous = _ambiguous_status(case_run, _texts) if _lists_calls(case_run) else None
    return Finding(
        _lists_calls(case_run) and not unnamed and ambiguous is None,
        expected="; ".join(f"{call.tool}: {call.status}" for call in wanted)
        + f"; and a text that names {', '.join(_unnamed(case_run, []))}",
        seen=f"followUps {quote(printed['followUps'])}"
        + (f"; no text names {', '.join(unnamed)}" if unnamed else "")
        + (f"; no text is for {ambiguous} alone" if ambiguous else ""),
    )


def _told_in_structured(printed: Json) -> list[str]:
    """Return the texts of the printed `structuredContent.followUps`."""
    texts = within(printed, "structuredContent").get("followUps")
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def _texts(printed: Json) -> list[str]:
    """Return the texts of the printed content."""
    found = [item.get("text") for item in printed["content"] if isinstance(item, dict)]
    return [text for text in found if isinstance(text, str)]


def _results(case_run: CaseRun) -> list[Json]:
    return [call.result for call in case_run.log.operations if call.result is not None]


def _content(call: Operation) -> list[Json]:
    """Return the content of a call's result, without the words."""
    return [item for item in (call.result or {}).get("content", []) if not is_marked(item)]


LONGEST: Final = 128
"""The longest name of a tool that a client prints whole, in characters (TC-C-53)."""

NAME: Final = 100
"""The first characters of a longer name that a text must have: clients cut at 128 or before."""


STATUSES: Final = ("not_made", "unknown", "made")
"""A call that is sent again is one call, with the highest status of its requests."""


@dataclass(frozen=True)
class _FollowUp:
    """A call that a directive asked for."""

    number: int
    """The number of the call in the chain."""
    tool: str
    status: str
    """The status that the client must report: one of `STATUSES`."""
    to_be_named: bool = True
    """Whether a text must name its tool: if the client found it in the list (TC-C-33)."""

    @property
    def expected_name(self) -> str:
        name = self.tool
        if len(name) > LONGEST:
            name = (
                f"{name[:NAME]}… (a name of {len(name)} characters must be cut to {LONGEST}, not "
                f"left out; the suite searches for its first {NAME} characters)"
            )
        return f"{name} as call {self.number}"

    def is_named_in(self, text: str) -> bool:
        """Return whether a text has the call's number and the name of its tool."""
        name = json.dumps(self.tool, ensure_ascii=False)[1:-1]
        # A long name is cut (TC-C-53), wherever the client cuts it.
        named = name[:NAME] in text or self.tool[:NAME] in text
        return named and re.search(rf"(?<!\d){self.number}(?!\d)", text) is not None


def _lists_calls(case_run: CaseRun) -> bool:
    """Return whether the printed `followUps` lists each follow-up call with its status."""
    wanted, named = _follow_ups(case_run), (case_run.end.printed or {}).get("followUps")
    if not isinstance(named, list) or len(named) != len(wanted):
        return False
    return all(
        isinstance(each, dict)
        and each.get("tool", None if call.to_be_named else call.tool) == call.tool
        and each.get("status") == call.status
        for each, call in zip(named, wanted, strict=True)
    )


def _ambiguous_status(case_run: CaseRun, texts_of: Callable[[Json], list[str]]) -> str | None:
    """Return a status whose text for the model is the same as another status's, or None.

    Texts of other cases are compared too, since no chain has every status. Names of tools and
    numbers are removed first. In `followUps`, what a call returned may stand after its status.
    """
    runs = [run for run in case_run.others.values() if run.log.operations and _lists_calls(run)]
    for status in STATUSES[:2]:
        if not any(status == call.status for call in _follow_ups(case_run)):
            continue
        elsewhere: set[str] = set()
        for run in runs:
            if not any(status == call.status for call in _follow_ups(run)):
                elsewhere |= _client_texts(run, texts_of)
        own = _client_texts(case_run, texts_of)
        if all(any(each.startswith(text) for each in elsewhere) for text in own):
            return status
    return None


def _client_texts(case_run: CaseRun, texts_of: Callable[[Json], list[str]]) -> set[str]:
    """Return the texts that the client itself added, without names and numbers."""
    items = [item for result in _results(case_run) for item in result.get("content", [])]
    from_server = [item.get("text") for item in items]
    names = {call.tool for call in _follow_ups(case_run)}
    added = set[str]()
    for text in texts_of(case_run.end.printed or {"content": []}):
        if text not in from_server:
            for name in sorted(names, key=len, reverse=True):
                text = text.replace(json.dumps(name)[1:-1], "…").replace(name, "…")
            added.add(re.sub(r"\d+", "…", text))
    return added


def _unnamed(case_run: CaseRun, texts: list[str]) -> list[str]:
    """Return the follow-up calls that none of the texts names."""
    return [
        each.expected_name
        for each in _follow_ups(case_run)
        if each.to_be_named and not any(each.is_named_in(text) for text in texts)
    ]


def _follow_ups(case_run: CaseRun) -> list[_FollowUp]:
    """Return each follow-up call, with its status."""
    calls = case_run.log.operations
    named: list[_FollowUp] = []
    for before, call in itertools.pairwise(calls):
        again = call.tool == before.tool and same(call.arguments, before.arguments)
        status = "not_made" if call.refused else "unknown" if call.result is None else "made"
        if again and named:
            status = max(named.pop().status, status, key=STATUSES.index)
        named.append(_FollowUp(len(named) + 2, call.tool, status))
    directive = ((calls[-1].result or {}).get("_meta") or {}).get("nextTool")
    ended = case_run.case.expect.outcome not in ("completed", "malformed_directive")
    if ended and isinstance(directive, dict):
        looked_up = case_run.case.expect.outcome not in ("unknown_tool", "limit_reached")
        named.append(_FollowUp(len(named) + 2, directive["tool"], "not_made", looked_up))
    return named


def _first_missing(wanted: list[Json], printed: list[Any]) -> Json | None:
    """Return the first expected item that is missing or in a wrong place, or None."""
    left = iter(printed)
    for item in wanted:
        if not any(_has(seen, item) for seen in left):
            return item
    return None


def _has(seen: Any, wanted: Any) -> bool:
    """Return whether a printed value has every member that the server sent, except `_meta`.

    Some clients also print members that the server left out.
    """
    if isinstance(wanted, dict) and isinstance(seen, dict):
        return all(_has(seen.get(name), wanted[name]) for name in wanted if name != "_meta")
    return same(seen, wanted)
