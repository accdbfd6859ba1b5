"""Names for cases, so that a failure says which one it is."""

import json
from collections.abc import Sequence
from typing import Any


def named(cases: Sequence[Any]) -> list[str]:
    """A short, printable name for each case, in order."""
    return [f"{number}: {shown(case)}" for number, case in enumerate(cases)]


def shown(case: Any) -> str:
    """A case in a few words, whatever values it holds."""
    if isinstance(case, tuple):
        return " ".join(map(shown, case))
    if isinstance(case, str) and case.isascii() and case.isprintable():
        words = case
    elif case is ...:
        words = "missing"
    else:
        try:
            words = json.dumps(case, default=str)
        except ValueError:
            words = "too long a number"
    return words if len(words) <= 40 else f"{words[:39]}~"
