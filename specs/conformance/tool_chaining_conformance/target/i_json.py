"""Checks that a directive is I-JSON (RFC 7493), and that RFC 8785 preserves its numbers.

A parser hides such faults, for example a duplicate name. So this parses the message's text a
second time.
"""

import json
import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tool_chaining_conformance.names import META_KEY

_PLACE: Final = ("result", "_meta", META_KEY)


class _Number(str):
    """A number as it is written."""


class _Members(list[tuple[str, Any]]):
    """The members of an object, in order; a name may occur twice."""


def directive_faults(text: str | bytes) -> tuple[str, ...]:
    """Return the faults of the directive in a response; none if it has no directive.

    `text` is valid JSON.
    """
    quoted = f'"{META_KEY}"'
    if not (quoted.encode() in text if isinstance(text, bytes) else quoted in text):
        return ()
    value = json.loads(
        text,
        object_pairs_hook=_Members,
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_Number,
    )
    for name in _PLACE:
        found = [item for key, item in value if key == name] if isinstance(value, _Members) else []
        if not found:
            return ()
        value = found[-1]
    return tuple(dict.fromkeys(_faults(value)))


def _faults(value: Any) -> Iterator[str]:
    if isinstance(value, _Members):
        names = [name for name, _ in value]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield f"the name {json.dumps(name)} occurs {names.count(name)} times in one object"
        for name, item in value:
            yield from _in_text(name)
            yield from _faults(item)
    elif isinstance(value, list):
        for item in value:
            yield from _faults(item)
    elif isinstance(value, _Number):
        if not _is_kept(value):
            number = value if len(value) <= 40 else f"of {len(value)} characters"
            double = float(value)
            written = f"writes as {double!r}" if math.isfinite(double) else "cannot write"
            yield f"the number {number}, which RFC 8785 {written}"
    elif isinstance(value, str):
        yield from _in_text(value)


def _is_kept(number: str) -> bool:
    """Return whether a number has the same value as a double, as RFC 8785 writes it."""
    double = float(number)
    try:
        return math.isfinite(double) and Decimal(number) == Decimal(repr(double))
    except InvalidOperation:
        return False


def _in_text(text: str) -> Iterator[str]:
    for character in text:
        point = ord(character)
        if 0xD800 <= point <= 0xDFFF:
            yield f"half of a surrogate pair, U+{point:04X}"
        elif point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF:
            yield f"a noncharacter, U+{point:04X}"
