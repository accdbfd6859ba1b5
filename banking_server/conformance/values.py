"""The suite's own reading of JSON values: it shares no judgement with what it judges."""

from collections.abc import Hashable
from typing import Any


def identity(value: Any) -> Hashable:
    """Return what two JSON values have in common exactly if they are the same.

    A number is its value (`1` is `1.0`), `true` is not a number, members have no order and the
    items of a list have one. Raises RecursionError if it is nested deeper than Python can walk.
    """
    match value:
        case bool() | None:
            return ("literal", value)
        case int() | float():
            return ("number", value)
        case str():
            return ("string", value)
        case list():
            return ("array", tuple(identity(item) for item in value))
        case dict():
            return ("object", frozenset((name, identity(item)) for name, item in value.items()))
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same."""
    return identity(one) == identity(other)
