"""Plain text for terminals, logs and files: messages of a target, and a check that failed.

It has no control or invisible characters.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tool_chaining_conformance.message import WireMessage
from tool_chaining_conformance.report.judgement import Judgement, eras_of, grouped
from tool_chaining_conformance.text import UNSEEN, block, cut
from tool_chaining_conformance.values import at_pointer


def as_json(value: Any, indent: int | None = None) -> str:
    """Return valid JSON for anything that Python's parser accepts; `NaN` becomes a string.

    Control and invisible characters, and lone surrogates, are written as escapes.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(finite, indent=indent, ensure_ascii=False)
    text = text.replace("##[", "##\\u005b")  # Else GitHub would obey it.
    return UNSEEN.sub(lambda seen: seen[0] if seen[0] == "\n" else json.dumps(seen[0])[1:-1], text)


def message_line(message: WireMessage, length: int) -> str:
    """Return a message on one line, with who sent it, cut after `length` characters."""
    shown = as_json(message.body) if message.raw is None else message.raw
    return f"{'->' if message.sender == 'client' else '<-'} {cut(shown, length)}"


SHOWN_MESSAGES: Final = 6
"""Messages that a failure shows if no single member is wrong; report.json has all."""

_MARGIN: Final = " " * 11
"""The indent of the lines under a result: the width of its status on the terminal."""


def indented(text: str) -> str:
    """Return a text for a terminal or a log; further lines have its indent."""
    margin = text[: len(text) - len(text.lstrip())]
    return margin + block(text, margin)


def failure_lines(failures: Sequence[Judgement]) -> Iterator[tuple[str, str]]:
    """Yield the lines about the failures on one check, each with its style on a terminal."""
    check = failures[0].check
    for requirement in check.requirements:
        yield f"{_MARGIN}{requirement.id}  {requirement.text}", ""
    yield f"{_MARGIN}change    {failures[0].advice or check.remedy}", ""
    # Failures that differ only in their era are shown once.
    places = grouped(failures, lambda each: (each.at, each.expected, each.seen))
    for number, group in enumerate(places, 1):
        first = group[0]
        of = f"{number} of {len(places)}" if len(places) > 1 else "at"
        yield f"{of:>10} {first.at or 'the run'}  {eras_of(group)}", "bold"
        yield f"{_MARGIN}expected  {first.expected}", ""
        yield f"{_MARGIN}seen      {first.seen}", ""
        # The messages of the other places are often the same; report.json has them all.
        if number == 1:
            yield from ((f"{_MARGIN}{line}", style) for line, style in _messages(first))


def _messages(judgement: Judgement) -> Iterator[tuple[str, str]]:
    at, message, messages = judgement.check.at, judgement.at_fault, judgement.messages
    if at is not None and message is not None:
        for other in messages:
            if other.body.get("id") == message.body.get("id") and other is not message:
                yield message_line(other, 160), "dim"
        yield message_line(message, 500), "dim"
        found = at_pointer(at, message.body, absent=...)
        value = "is missing" if found is ... else f"is {cut(as_json(found), 1000)}"
        if message.raw is None:
            yield f"wrong     {at} {value}", ""
        return
    if len(messages) > SHOWN_MESSAGES:
        yield f"({len(messages) - SHOWN_MESSAGES} earlier messages are in report.json)", "dim"
    for message in messages[-SHOWN_MESSAGES:]:
        yield message_line(message, 500), "dim"
