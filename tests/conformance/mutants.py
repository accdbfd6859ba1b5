"""What mutants are called in `mutants.yaml`."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

MUTANTS = Path(__file__).with_name("mutants.yaml")


@dataclass(frozen=True)
class Mutant:
    """A deliberately wrong implementation."""

    name: str
    check: str
    """The check that it fails."""
    wrong: str
    """What is wrong with it."""
    collateral: tuple[str, ...] = ()
    """Related checks that fail for the same reason, or can no longer be made."""


def load_mutants() -> tuple[Mutant, ...]:
    """Return every mutant, in the order of the file."""
    rows = yaml.safe_load(MUTANTS.read_text(encoding="utf-8"))["mutants"]
    return tuple(Mutant(**row) for row in rows)


def by_name(module, kind):
    """Return the mutants of a module: its classes of a kind, `AsksOnce` as `asks-once`.

    A class whose name begins with `_` is no mutant, and the base of some.
    """
    return {
        re.sub(r"(?<!^)(?=[A-Z0-9])", "-", name).lower(): member
        for name, member in module.items()
        if isinstance(member, type)
        and issubclass(member, kind)
        and member.__module__ == module["__name__"]
        and not name.startswith("_")
    }
