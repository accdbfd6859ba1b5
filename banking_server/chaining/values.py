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
    """Return the value as RFC 8785 writes it. Two values are the same JSON if their texts are.

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
        # The order is that of UTF-16 code units, in which U+1F512 comes before U+FFFD.
        names = sorted(value, key=_in_utf_16) if len(value) > 1 else value
        return f"{{{','.join([f'{_text(name)}:{canonical(value[name])}' for name in names])}}}"
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def keeps_its_value(value: Any) -> bool:
    """Return whether RFC 8785 writes each number of a value with the value that it has.

    It does not for most integers beyond 2^53, which other readers take for a neighbour (TC-S-26).
    Raises as `canonical`.
    """
    if isinstance(value, dict):
        return all(map(keeps_its_value, value.values()))
    if isinstance(value, list):
        return all(map(keeps_its_value, value))
    return (
        not isinstance(value, int) or isinstance(value, bool) or Decimal(canonical(value)) == value
    )


def _in_utf_16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        # Its own message repeats the value.
        raise ValueError("a text with half of a surrogate pair") from None
    return _WRITER.encode(value)


def _number(value: int | float) -> str:
    """Return a number as ECMAScript writes it: the fewest digits that name the double."""
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise ValueError("a number that no IEEE double can hold")
    if double == 0:
        return "0"  # -0 too
    # Python has the same digits, and its own way to place the point.
    mantissa, _, exponent = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = f"{whole}{fraction}".lstrip("0")
    digits = leading.rstrip("0")
    point = len(leading) - len(fraction) + int(exponent or 0)
    sign = "-" if double < 0 else ""
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if 0 < point <= 21:
        fraction = digits[point:]
        return f"{sign}{digits[:point].ljust(point, '0')}{'.' if fraction else ''}{fraction}"
    fraction = digits[1:]
    return f"{sign}{digits[0]}{'.' if fraction else ''}{fraction}e{point - 1:+d}"


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
