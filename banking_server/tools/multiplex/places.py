"""Where in a step's arguments a value stands, and what is said if there is none for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

Path = tuple[str | int, ...]
"""Where in the arguments a value stands."""

ABSENT: Final = object()
"""In the place of a value: the argument is left out."""


class ArgumentNotFound(Exception):
    """A value could not be found; the message says for people which and why."""


def name_of(path: Path) -> str:
    """Return how a place in the arguments is named to people: `arguments.address.street`."""
    return ".".join(["arguments", *map(str, path)])


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of a value that is not found which argument it was for."""
    try:
        yield
    except ArgumentNotFound as problem:
        raise ArgumentNotFound(f"{name_of(path)}: {str(problem).rstrip('.')}.") from None


def children(value: Any) -> Iterator[tuple[str | int, Any]]:
    """Yield what stands in an object or a list, each with its name or position."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def is_larger(value: Any, limit: int) -> bool:
    """Return whether more than `limit` values stand in an object or a list, at any depth."""
    level = [value]
    while level and limit >= 0:
        level = [item for one in level for _, item in children(one)]
        limit -= len(level)
    return limit < 0


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Return `value` with what stands at `path` replaced by `new`, or left out (`ABSENT`).

    A list has no member left out.
    """
    if not path:
        return new
    head, *rest = path
    if new is ABSENT and not rest:
        return {name: item for name, item in value.items() if name != head}
    if isinstance(value, list):
        return [
            replaced(item, tuple(rest), new) if index == head else item
            for index, item in enumerate(value)
        ]
    return {**value, head: replaced(value[head], tuple(rest), new)}
