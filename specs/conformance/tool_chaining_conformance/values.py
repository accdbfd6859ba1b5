"""JSON values: the suite has its own comparison, and shares no code with what it judges."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")
"""An index of a list, as RFC 6901 writes it: `-1` and `01` are not valid."""


def identity(value: Any) -> str:
    """Return a text that is the same for two values exactly if RFC 8785 writes them alike.

    A number is the nearest double (`1` is `1.0`, and 2^53 is 2^53 + 1); `true` is not a number. The
    order of members does not count. A value that RFC 8785 cannot write equals only itself: a number
    that no double can hold, half of a surrogate pair. Raises TypeError if the value is not JSON.
    """
    match value:
        case list():
            return f"[{','.join(map(identity, value))}]"
        case dict():
            members = sorted(f"{json.dumps(name)}:{identity(value[name])}" for name in value)
            return f"{{{','.join(members)}}}"
        case None | bool() | str():
            return json.dumps(value)
        case int() | float():
            return _number(value)
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


def _number(number: float) -> str:
    try:
        double = float(number)
    except OverflowError:
        return str(number)
    return str(double + 0.0)  # -0.0 becomes 0.0.


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same."""
    return identity(one) == identity(other)


def at_pointer(pointer: str, value: Any, absent: Any = None) -> Any:
    """Return the value at a JSON Pointer (RFC 6901), or `absent` if there is none."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return absent
    return value


SHOWN: Final = 300
"""Characters of a value in a message."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[^\s",:\[\]{}]++|.')
"""A token of JSON: a string, a number or a literal, a punctuation mark."""


def quote(value: Any) -> str:
    """Return a value as JSON, cut after 300 characters, for a report.

    It is cut between strings and numbers, never inside one. A report removes secrets later, and
    would not recognize the beginning of a secret.
    """
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > SHOWN:
        end = 0
        for token in _TOKEN.finditer(text):
            if token.end() > SHOWN:
                break
            end = token.end()
        text = f"{text[:end]}… ({len(text):,} characters)"
    return text


def texts_in(value: Any) -> Iterator[str]:
    """Yield each text and number in a JSON value."""
    match value:
        case dict() | list():
            for item in value.values() if isinstance(value, dict) else value:
                yield from texts_in(item)
        case bool() | None:
            return
        case _:
            yield str(value)
