"""The suite's own reading of JSON values: it shares no judgement with what it judges."""

import json
import re
from typing import Any, Final

_INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")
"""A place in a list, as RFC 6901 writes it: `-1` and `01` are not."""


def identity(value: Any) -> str:
    """Return one text for all values for which RFC 8785 writes one text.

    A number is the double next to it (`1` is `1.0`, and 2^53 is 2^53 + 1), `true` is not a number,
    members have no order and the items of a list have one. What RFC 8785 cannot write is itself: a
    number that no double can hold, half a character. Raises TypeError if it is not a JSON value.
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


def at_pointer(pointer: str, value: Any) -> Any:
    """Return what a JSON Pointer (RFC 6901) leads to in `value`, or None if it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


SHOWN: Final = 300
"""Characters of a value that a sentence shows."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[^\s",:\[\]{}]++|.')
"""What a JSON text is made of: a text, a number or a word, a mark."""


def shown(value: Any) -> str:
    """Return a value as a report shows it: JSON, cut after 300 characters.

    It is cut between texts and numbers, never within one: a secret stands in one of them, and the
    beginning of a secret would no longer be known for it where reports leave secrets out.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value that is nested too deeply to be shown"
    if len(text) > SHOWN:
        end = 0
        for token in _TOKEN.finditer(text):
            if token.end() > SHOWN:
                break
            end = token.end()
        text = f"{text[:end]}… ({len(text):,} characters)"
    # Half of a pair of surrogates can be sent, but neither printed nor written.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
