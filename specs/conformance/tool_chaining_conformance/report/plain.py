"""Makes messages of a target safe to print, without control or invisible characters."""

import json
from typing import Any

from tool_chaining_conformance.message import WireMessage
from tool_chaining_conformance.text import UNSEEN, cut


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


def on_one_line(value: Any, length: int) -> str:
    """Return a JSON value on one line, cut after `length` characters."""
    return cut(as_json(value), length)


def message_line(message: WireMessage, length: int) -> str:
    """Return a message on one line, with who sent it, cut after `length` characters."""
    shown = on_one_line(message.body, length) if message.raw is None else cut(message.raw, length)
    return f"{'->' if message.sender == 'client' else '<-'} {shown}"
