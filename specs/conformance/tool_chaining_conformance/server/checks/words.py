"""Checks of the text that describes a directive, and of the other content."""

import re
from typing import Any

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.names import IDENTIFIER, META_KEY
from tool_chaining_conformance.report.judgement import Finding
from tool_chaining_conformance.server.bounded import CannotTell, first_fault
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import PassedOn, ResultWithDirective, Withheld
from tool_chaining_conformance.server.reading import (
    NEXT_STEP,
    SeenDirective,
    has_next_step,
    is_for_user,
    is_marked,
    names_call,
    objects_within,
    without_next_step,
    words_of,
)
from tool_chaining_conformance.text import is_blank
from tool_chaining_conformance.values import quote, same


@check("tool-chaining-server-content-without-directive", on=ResultWithDirective)
def content_without_directive(result: ResultWithDirective) -> Finding:
    """There is content for a client that does not support directives."""
    words = words_of(result.content, result.directive)
    others = [item for item in result.content if item not in words]
    blank = [item for item in others if _is_blank(item)]
    return Finding(
        len(others) > len(blank),
        expected="at least one content item besides the words, and not a blank text",
        seen=f"{len(others)} such items" + (f", {len(blank)} of them blank" if blank else ""),
    )


def _is_blank(item: Json) -> bool:
    """Return whether a content item is a text without a visible character."""
    text = item.get("text")
    return item.get("type") == "text" and isinstance(text, str) and is_blank(text)


@check("tool-chaining-server-repeats-step-in-its-place", on=ResultWithDirective)
def repeats_step_in_its_place(result: ResultWithDirective) -> Finding | None:
    """The directive is repeated only in marked items and in `nextStep`."""
    seen = result.directive
    if seen.key is None:
        return None
    structured = without_next_step(result.structured)
    unmarked = [item for item in result.content if not is_marked(item)]
    repeating = [
        *(quote(item) for item in unmarked if _repeats(item, seen)),
        *(["structuredContent " + quote(structured)] if _repeats(structured, seen) else []),
    ]
    return Finding(
        not repeating,
        expected=f'{seen.tool} with its arguments only in items with the mark "{IDENTIFIER}": '
        f'{{"describes": "{META_KEY}"}} and in the member {NEXT_STEP} of structuredContent',
        seen=", ".join(repeating) or "only there",
    )


def _repeats(value: Json, seen: SeenDirective) -> bool:
    """Return whether a value repeats a directive for a model, as text or as data."""
    return names_call(value, seen) or _has_call(value, seen)


def _has_call(value: Any, seen: SeenDirective) -> bool:
    """Return whether some object in a JSON value, or in a text of it, is the call of a directive.

    It has the tool and the arguments as members: without arguments, as `tool` and `arguments`.
    """
    if not seen.arguments:
        return any(
            each.get("tool") == seen.tool and each.get("arguments") == {}
            for each in objects_within(value)
        )
    return any(
        seen.tool in members
        and any(isinstance(one, dict) and same(one, seen.arguments) for one in members)
        for members in (list(each.values()) for each in objects_within(value))
    )


@check("tool-chaining-server-intermediary-removes-directive", on=PassedOn)
def intermediary_removes_directive(result: PassedOn) -> Finding:
    """An intermediary that followed a directive removes it and its words from the result."""
    return _withheld(result, "since this server followed it")


@check("tool-chaining-server-intermediary-withholds-directive", on=Withheld)
def intermediary_withholds_directive(result: Withheld) -> Finding:
    """An intermediary hands on no directive to a tool that belongs to another server."""
    return _withheld(result, "since this server may not hand them on")


def _withheld(result: PassedOn, why: str) -> Finding:
    """Find that a result has neither a directive nor its words."""
    left = _left(result)
    return Finding(
        not left,
        expected=f"neither the directive nor its words, {why}",
        seen=", ".join(left) or "neither",
    )


def _left(result: PassedOn) -> list[str]:
    """Return the names of the parts of a directive that a result still has."""
    structured = without_next_step(result.structured)
    unmarked = [item for item in result.content if not (is_marked(item) or is_for_user(item))]
    return [
        *(["the directive"] if result.directive is not None else []),
        *(["its words"] if words_of(result.content, result.directive) else []),
        *(f"unmarked words: {quote(item)}" for item in unmarked if _asks(item, result)),
        *([NEXT_STEP] if has_next_step(result.structured) else []),
        *(["structuredContent with a call"] if _asks(structured, result) else []),
    ]


def _asks(value: Json, result: PassedOn) -> bool:
    """Return whether a value asks for a call of a listed tool, with arguments that the tool takes.

    The directive was removed. So any call counts, also by the name that the server behind this one
    gives the tool: the name in the list may have a prefix.
    """
    return any(
        _takes(schema, found) and _repeats(value, SeenDirective({"tool": name, "arguments": found}))
        for found in objects_within(value)
        for tool, listed in result.listed.items()
        if (schema := within(listed, "inputSchema"))
        for name in _names_of(tool)
    )


def _names_of(tool: str) -> list[str]:
    """Return the name of a tool, and that without a prefix if it is still of several words."""
    _, *rest = re.split(r"[^A-Za-z0-9]+", tool, maxsplit=1)
    return [tool, *(each for each in rest if re.search(r"[^A-Za-z0-9]", each))]


def _takes(schema: Json, arguments: Json) -> bool:
    """Return whether a schema declares every one of some arguments, and they are valid."""
    if not arguments or not arguments.keys() <= within(schema, "properties").keys():
        return False
    try:
        return first_fault(schema, arguments) is None
    except CannotTell:
        return False
