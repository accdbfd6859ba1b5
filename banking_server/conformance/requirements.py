"""The numbered sentences of the specification, and the checks that test them.

All of it is data: `specs/requirements.yaml` says which check tests which sentence,
`specs/conformance/checks.yaml` what a check compares and what to change when it fails.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, Literal

from banking_server.conformance.specification import read_yaml
from banking_server.conformance.target.era import Era

_MUST: Final = re.compile(r"\bMUST\b")

Side = Literal["server", "client"]


class Level(StrEnum):
    """How binding a sentence is: a check that fails is a FAILURE for MUST, a WARNING for SHOULD."""

    MUST = "MUST"
    SHOULD = "SHOULD"


@dataclass(frozen=True)
class Requirement:
    """One normative sentence."""

    id: str
    text: str
    checks: tuple[str, ...]
    """Empty if no check tests the sentence; `excluded` then says why."""
    excluded: str | None
    """Why no check tests it, or None if one does."""
    testable_if: str | None
    """What would have to be there for a check to test it, if it is excluded."""

    @property
    def level(self) -> Level:
        """MUST or SHOULD, by the sentence's own keyword."""
        return Level.MUST if _MUST.search(self.text) else Level.SHOULD


@dataclass(frozen=True)
class Check:
    """One check, with the sentences it tests."""

    id: str
    requirements: tuple[Requirement, ...]
    judges: str
    """What it compares, in one sentence."""
    remedy: str
    """What an implementer changes when it fails."""
    eras: tuple[Era, ...]
    """The eras in which it can be made."""

    @property
    def level(self) -> Level:
        """The strictest of its sentences' levels."""
        levels = {requirement.level for requirement in self.requirements}
        return Level.MUST if Level.MUST in levels else Level.SHOULD

    @property
    def side(self) -> Side:
        """Whether it judges servers or clients."""
        return "server" if self.id.startswith("tool-chaining-server-") else "client"

    def to_json(self) -> dict[str, Any]:
        """Return the check as `list --json` shows it."""
        return {
            "id": self.id,
            "level": self.level,
            "spec_versions": list(self.eras),
            "judges": self.judges,
            "remedy": self.remedy,
            "requirements": [
                {"id": requirement.id, "text": requirement.text}
                for requirement in self.requirements
            ],
        }


@cache
def load_requirements() -> tuple[Requirement, ...]:
    """Return every numbered sentence, in the order of the file."""
    rows = read_yaml("requirements.yaml")["requirements"]
    return tuple(
        Requirement(
            id=row["id"],
            text=row["text"],
            checks=_as_tuple(row.get("check")),
            excluded=row.get("excluded"),
            testable_if=row.get("testable_if"),
        )
        for row in rows
    )


@cache
def load_checks() -> Mapping[str, Check]:
    """Return every check by its id, in the order in which the sentences name them."""
    described = {row["id"]: row for row in read_yaml("conformance/checks.yaml")["checks"]}
    checks: dict[str, Check] = {}
    for requirement in load_requirements():
        for check_id in requirement.checks:
            row = described[check_id]
            checks[check_id] = Check(
                id=check_id,
                requirements=tuple(
                    other for other in load_requirements() if check_id in other.checks
                ),
                judges=row["judges"],
                remedy=row["remedy"],
                eras=tuple(Era(version) for version in row.get("spec_versions", list(Era))),
            )
    return checks


def checks_of(side: Side) -> tuple[Check, ...]:
    """Return the checks that judge servers, or clients."""
    return tuple(check for check in load_checks().values() if check.side == side)


def _as_tuple(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
