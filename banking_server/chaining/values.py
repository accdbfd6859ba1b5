"""JSON values: when two are the same, whether one can be written, and what a pointer points to."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

_INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")
"""A position in a list as RFC 6901 writes it; `-1` and `01` are not positions."""

_WRITER: Final = json.JSONEncoder(ensure_ascii=False)
"""Made once: `json.dumps` makes another for each text that may have other letters."""


def canonical(value: Any) -> str:
    """Return a text of a value that is the same for those alone which RFC 8785 writes alike.

    Numbers are IEEE doubles: `1` and `1.0` are one number, and so are 2^53 and 2^53 + 1. Texts are
    compared code point by code point, with no Unicode normalization.

    Raises ValueError if RFC 8785 cannot write the value: a number that no double can hold, a text
    that is not Unicode, or what is no JSON at all. Raises RecursionError if the value is nested
    deeper than Python can follow.
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        members = [f"{_text(name)}:{canonical(value[name])}" for name in sorted(value)]
        return f"{{{','.join(members)}}}"
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def keeps_its_value(value: Any) -> bool:
    """Return whether a reader to which numbers are doubles writes each with the value it has here.

    It does not for most integers beyond 2^53 (TC-S-26). Raises OverflowError for an integer that no
    double can hold.
    """
    if isinstance(value, dict):
        return all(map(keeps_its_value, value.values()))
    if isinstance(value, list):
        return all(map(keeps_its_value, value))
    return not isinstance(value, int) or Decimal(repr(float(value))) == value


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        # Its own message repeats the value.
        raise ValueError("a text with half of a surrogate pair") from None
    return _WRITER.encode(value)


def _number(value: int | float) -> str:
    """Return one text for each double."""
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise ValueError("a number that no IEEE double can hold")
    # Both zeros are 0, and a whole number looks like one.
    return str(int(double)) if double.is_integer() else repr(double)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: `1` and `1.0` are, `1` and `true` are not.

    What RFC 8785 cannot write is the same as nothing. Raises RecursionError as `canonical` does.
    """
    try:
        return canonical(one) == canonical(other)
    except ValueError:
        return False


def is_json(value: Any) -> bool:
    """Return whether a value can be written as JSON: no NaN, no lone surrogate, not too deep."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class Nowhere:
    """The pointer points to nothing."""

    part: str
    """The part of the pointer at which the way ended."""


def pointer_parts(pointer: str) -> list[str] | None:
    """Return the parts of a JSON Pointer (RFC 6901), or None if the text is not a pointer.

    The empty pointer has no parts: it points to the whole value.
    """
    if (pointer and not pointer.startswith("/")) or re.search("~(?![01])", pointer):
        return None
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def is_index(part: str) -> bool:
    """Return whether a part of a pointer can be a position in a list."""
    return _INDEX.fullmatch(part) is not None


def follow(parts: Sequence[str], value: Any) -> Any | Nowhere:
    """Return what the parts of a pointer point to in `value`, or `Nowhere`."""
    for part in parts:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return Nowhere(part)
    return value
