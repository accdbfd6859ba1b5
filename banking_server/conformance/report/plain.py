"""What a target sent, made fit to be shown: nothing in it moves a cursor or turns a line."""

import json
import re
from typing import Any, Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.keeping import CUT, Place, parts_of, reached
from banking_server.text import printable


def as_json(value: Any, indent: int | None = None) -> str:
    """Return valid JSON for anything that Python's parser takes for it, `NaN` and so on as text.

    It is always UTF-8: a lone surrogate stays as it was written, an escape.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), indent=indent, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return json.dumps(value)
        case _:
            return value


WIDTH: Final = 76
"""Columns within which a value stands on one line."""

Line = tuple[str, bool]
"""A line of a message, and whether it belongs to the member at fault."""


def message_lines(message: WireMessage, place: Place | None) -> list[Line]:
    """Return a message over several lines, those of the place in it marked.

    Long parts away from the place are left out, and a line says so.
    """
    path = [] if place is None else parts_of(place.pointer)
    found = len(path) if place is None else reached(place.pointer, message.body)
    # Where the member is missing, the one that should have it is marked.
    marked_path = None if place is None else path[:found]
    lines: list[Line] = []
    _write(message.body, marked_path, "", "", "", False, lines)
    return _folded([(printable(text), marked) for text, marked in lines])


def _write(
    value: Any,
    path: list[str] | None,
    indent: str,
    before: str,
    after: str,
    marked: bool,
    lines: list[Line],
) -> None:
    """Write a value; `path` leads to the member to be marked, and is empty once it is there."""
    marked = marked or path == []
    text = as_json(value)
    whole = path is None or path == []
    if (
        not isinstance(value, dict | list)
        or not value
        or (whole and len(indent + before + text + after) <= WIDTH)
    ):
        lines.append((f"{indent}{before}{text}{after}", marked))
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines.append((f"{indent}{before}{opening}", marked))
    members = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for number, (name, item) in enumerate(members):
        inner = path[1:] if path and path[0] == str(name) else None
        key = f"{as_json(name)}: " if isinstance(value, dict) else ""
        comma = "," if number < len(members) - 1 else ""
        _write(item, inner, indent + "  ", key, comma, marked, lines)
    lines.append((f"{indent}{closing}{after}", marked))


SHOWN_LINES: Final = 60
"""Lines of a message that are shown; of what is marked, and around it, a third each."""


def _folded(lines: list[Line]) -> list[Line]:
    if len(lines) <= SHOWN_LINES:
        return lines
    third = SHOWN_LINES // 3
    marked = [number for number, (_, is_marked) in enumerate(lines) if is_marked]
    first = marked[0] if marked else 0
    kept = {0, len(lines) - 1}
    kept |= set(range(max(0, first - third), min(len(lines), first + 2 * third)))
    kept |= set(marked[-third:]) if len(marked) <= 2 * third else set(marked[-3:])
    shown: list[Line] = []
    last = -1
    for number in sorted(kept):
        if number > last + 1:
            left_out = number - last - 1
            inside = lines[last + 1][1] and lines[number - 1][1]
            shown.append((f"{CUT} {left_out:,} lines", inside))
        shown.append(lines[number])
        last = number
    return shown


def message_line(message: WireMessage, length: int) -> str:
    """Return a message on one line, cut after `length` characters."""
    text = printable(as_json(message.body))
    return text if len(text) <= length else text[:length] + CUT
