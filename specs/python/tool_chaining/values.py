"""JSON values: one text for equal values, and numbers that keep their value."""

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

_WRITER: Final = json.JSONEncoder(ensure_ascii=False)
"""Made once: `json.dumps` with `ensure_ascii=False` makes a new encoder for each call."""

_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef{}]".format(
        "".join(chr(p << 16 | end) for p in range(17) for end in (0xFFFE, 0xFFFF))
    )
)


def canonical(value: Any) -> str:
    """Return a text that is the same for two values exactly if RFC 8785 writes them alike.

    Numbers are IEEE doubles: `1` and `1.0` are one number, and so are 2^53 and 2^53 + 1. Texts are
    compared code point by code point, with no Unicode normalization.

    Raises ValueError if RFC 8785 cannot write the value: a number that no double can hold, a text
    that is not Unicode, or a value that is not JSON. Raises RecursionError if the value is nested
    too deep for Python.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        members = [f"{_text(name)}:{canonical(value[name])}" for name in sorted(value, key=_name)]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return _number(value)
    raise ValueError(f"{type(value).__name__} is not a JSON value")


@dataclass(frozen=True)
class CallKey:
    """What makes two calls equal: the tool and the canonical arguments."""

    tool: str
    arguments: str

    @classmethod
    def of(cls, tool: str, arguments: dict[str, Any]) -> "CallKey":
        """Return the key of a call.

        A call whose arguments RFC 8785 cannot write equals no other: a directive with the same
        arguments would be malformed.
        """
        try:
            return cls(tool, canonical(arguments))
        except (ValueError, RecursionError):
            return cls(tool, str(uuid4()))


def check_json(value: Any, place: str) -> None:
    """Raise ValueError if RFC 8785 cannot write a value; the message names the place in it."""
    if isinstance(value, dict):
        for name, part in value.items():
            check_json(part, f"{place}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            check_json(part, f"{place}[{index}]")
    try:
        canonical(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: as RFC 8785 writes them, where it can."""
    try:
        return canonical(one) == canonical(other)
    except (ValueError, RecursionError):
        return bool(one == other)


def is_i_json(value: Any) -> bool:
    """Return whether a value that `canonical` can write is I-JSON, with exact numbers (TC-S-26).

    Most integers beyond 2^53 are not exact as a double. I-JSON has no noncharacters, such as
    U+FFFF. Raises OverflowError for an integer that no double can hold.
    """
    if isinstance(value, dict):
        return all(is_i_json(part) for member in value.items() for part in member)
    if isinstance(value, list):
        return all(map(is_i_json, value))
    if isinstance(value, str):
        return value.isascii() or _NONCHARACTER.search(value) is None
    return not isinstance(value, int) or Decimal(repr(float(value))) == value


def _name(name: object) -> str:
    """Return the name of an object's member."""
    if isinstance(name, str):
        return name
    raise ValueError(f"{type(name).__name__} is not a JSON value")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        # The message of `UnicodeEncodeError` would repeat the value.
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
    # -0.0 and 0.0 are both written as 0.
    return str(int(double)) if double.is_integer() else repr(double)
