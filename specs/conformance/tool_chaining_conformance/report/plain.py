"""Makes messages of a target safe to print, without control or invisible characters."""

import json
import re
from typing import Any, Final

from tool_chaining_conformance.message import WireMessage
from tool_chaining_conformance.text import cut, printable

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def as_json(value: Any, indent: int | None = None) -> str:
    """Return valid JSON for anything that Python's parser accepts; `NaN` becomes a string.

    The text is always valid UTF-8: a lone surrogate is written as an escape.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(finite, indent=indent, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def on_one_line(value: Any, length: int) -> str:
    """Return a JSON value on one line, cut after `length` characters."""
    return cut(printable(as_json(value)), length)


def message_line(message: WireMessage, length: int) -> str:
    """Return a message on one line, with who sent it, cut after `length` characters."""
    return f"{'->' if message.sender == 'client' else '<-'} {on_one_line(message.body, length)}"
