"""What would change in a file, shown line by line."""

import difflib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from banking_server.host.printing import say

_AROUND: Final = 2
"""Lines that are shown before and after those that change."""

_LONGEST: Final = 400
"""Characters of a line that is shown whole; of a longer one, what changes and a few around it."""

_BESIDE: Final = 40

_STYLES: Final = {"+": "green", "-": "red", " ": "dim"}


def show_change(out: Console, path: Path, old: str, new: str) -> None:
    """Print what makes `new` of `old`: lines with + come, those with - go."""
    say(out, str(path) if old else f"{path} (new)", style="bold")
    for line in _changed(old, new):
        say(out, line, style=_STYLES[line[0]])


def _changed(old: str, new: str) -> Iterator[str]:
    lines = list(_hunk(old.splitlines(), new.splitlines()))
    if all(len(line) <= _LONGEST for line in lines):
        yield from lines
        return
    before = _shared(old, new)
    left, right = old[before:], new[before:]
    after = _shared(left[::-1], right[::-1])
    for sign, text in (("-", old), ("+", new)):
        start, end = max(before - _BESIDE, 0), len(text) - after + _BESIDE
        yield f"{sign}\N{HORIZONTAL ELLIPSIS}{text[start:end].strip()}\N{HORIZONTAL ELLIPSIS}"


def _hunk(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the lines that differ, and some around them; what is the same at both ends is skipped.

    A configuration may be long, and to compare all of it would take as long.
    """
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    until = len(old) - end
    yield from (f" {line}" for line in old[max(start - _AROUND, 0) : start])
    one, other = old[start:until], new[start : len(new) - end]
    between = difflib.unified_diff(one, other, n=len(one), lineterm="")
    yield from itertools.islice(between, 3, None)  # Without the names, and where it is.
    yield from (f" {line}" for line in old[until : until + _AROUND])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many members are the same at the beginning of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
