"""The numbered sentences of the specification, and the checks that test them.

All of it is data: the sentences are those of `specs/tool-chaining.md`, and the registry of checks
is `specs/conformance/checks.yaml`. `specs/requirements.yaml` is made from both (`publish`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from banking_server.conformance.specification import read_text, read_yaml
from banking_server.conformance.target.era import Era

if TYPE_CHECKING:
    from banking_server.conformance.formats import Registry

_SENTENCE: Final = re.compile(r"^- \*\*(TC-[DSC]-[0-9]{2})\*\* (.+)$", re.MULTILINE)
_FAMILIES: Final = "DSC"

Side = Literal["server", "client"]


class Level(StrEnum):
    """How binding a sentence is: a check that fails is a FAILURE for MUST, a WARNING for SHOULD."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    """A permission: nobody can fail to keep it."""


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
        """The strictest of the sentence's own keywords."""
        return next((level for level in Level if re.search(rf"\b{level}\b", self.text)), Level.MAY)


@dataclass(frozen=True)
class Check:
    """One check, with the sentences it tests."""

    id: str
    requirements: tuple[Requirement, ...]
    at: str | None
    """The member that a failure is about, as a JSON Pointer, if it always is the same."""
    judges: str
    """What it compares, in one sentence."""
    remedy: str
    """What an implementer changes when it fails."""
    needs: str | None
    """What a run has to bring for it, as a key of the registry's `needs`; None: nothing."""
    eras: tuple[Era, ...]
    """The eras in which it can be made."""

    @property
    def level(self) -> Level:
        """The strictest of its sentences' levels."""
        levels = {requirement.level for requirement in self.requirements}
        return next(level for level in Level if level in levels)

    @property
    def side(self) -> Side:
        """Whether it judges servers or clients."""
        return "server" if self.id.startswith("tool-chaining-server-") else "client"


@cache
def load_registry() -> "Registry":
    """Return the registry of checks."""
    from banking_server.conformance.formats import Registry

    return Registry.model_validate(read_yaml("conformance/checks.yaml"))


@cache
def load_requirements() -> tuple[Requirement, ...]:
    """Return every numbered sentence, in the order of the numbers; those not tested come last."""
    registry = load_registry()
    not_tested = {row.id: row for row in registry.not_tested}
    sentences = sorted(
        _SENTENCE.findall(read_text("tool-chaining.md")),
        key=lambda found: (found[0] in not_tested, _FAMILIES.index(found[0][3]), found[0]),
    )
    return tuple(
        Requirement(
            id=sentence,
            text=text,
            checks=tuple(check.id for check in registry.checks if sentence in check.tests),
            excluded=not_tested[sentence].excluded if sentence in not_tested else None,
            testable_if=not_tested[sentence].testable_if if sentence in not_tested else None,
        )
        for sentence, text in sentences
    )


@cache
def load_checks() -> Mapping[str, Check]:
    """Return every check by its id, in the order in which the sentences name them."""
    described = {row.id: row for row in load_registry().checks}
    checks: dict[str, Check] = {}
    for requirement in load_requirements():
        for check_id in requirement.checks:
            row = described[check_id]
            checks[check_id] = Check(
                id=check_id,
                requirements=tuple(
                    other for other in load_requirements() if check_id in other.checks
                ),
                at=row.at,
                judges=row.judges,
                remedy=row.remedy,
                needs=row.needs,
                eras=row.spec_versions,
            )
    return checks


def checks_of(side: Side) -> tuple[Check, ...]:
    """Return the checks that judge servers, or clients."""
    return tuple(check for check in load_checks().values() if check.side == side)
