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

import yaml

from banking_server.conformance.target.era import Era
from banking_server.packaged import packaged

_MUST: Final = re.compile(r"\bMUST\b")

Side = Literal["server", "client"]


class Level(StrEnum):
    """How binding a sentence is; it decides what a check that fails is called."""

    MUST = "MUST"
    SHOULD = "SHOULD"


@dataclass(frozen=True)
class Requirement:
    """One normative sentence."""

    id: str
    text: str
    checks: tuple[str, ...]
    """Empty where the sentence is excluded."""
    excluded: str | None
    """Why no check tests it."""
    testable_if: str | None

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


@cache
def load_requirements() -> tuple[Requirement, ...]:
    """Return every numbered sentence, in the order of the file."""
    rows = _read("requirements.yaml")["requirements"]
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
    described = {row["id"]: row for row in _read("conformance/checks.yaml")["checks"]}
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


def _read(path: str) -> Any:
    return yaml.safe_load((packaged("specs") / path).read_text("utf-8"))


def _as_tuple(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
