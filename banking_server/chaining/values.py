"""JSON values: when two are the same, whether one can be written, and what a pointer points to."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")
"""A position in a list as RFC 6901 writes it; `-1` and `01` are not positions."""


def canonical(value: Any) -> str:
    """Return the value as a text. Two values have the same text exactly if they are the same JSON.

    Members are sorted, and numbers are compared by value: `1` and `1.0` are one number in JSON.
    The text is for comparing and never leaves the process. Raises RecursionError if the value is
    nested deeper than Python can follow.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: `1` and `1.0` are, `1` and `true` are not."""
    return canonical(one) == canonical(other)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


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
