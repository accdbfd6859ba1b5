"""The numbered sentences of the specification, and the checks that test them.

The sentences are read from `specs/tool-chaining.md`, and the registry of checks from
`specs/conformance/checks.yaml`, which has a JSON Schema.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final, Literal

from tool_chaining_conformance.specification import read_text, read_yaml
from tool_chaining_conformance.target.era import Era

_SENTENCE: Final = re.compile(r"^- \*\*(TC-[DSC]-[0-9]{2})\*\* (.+)$", re.MULTILINE)
_FAMILIES: Final = "DSC"

Side = Literal["server", "client"]


class Level(StrEnum):
    """The keyword of a sentence: a failed check is a FAILURE for MUST, a WARNING for SHOULD."""

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
    """What a check would need to test it, if it is excluded."""

    @property
    def level(self) -> Level:
        """The strictest of the sentence's own keywords."""
        return next(level for level in Level if re.search(rf"\b{level}\b", self.text))


@dataclass(frozen=True)
class Check:
    """One check, with the sentences it tests."""

    id: str
    requirements: tuple[Requirement, ...]
    at: str | None
    """The member that every failure is about, as a JSON Pointer, if there is one."""
    judges: str
    """What it compares, in one sentence."""
    remedy: str
    """What an implementer must change if it fails."""
    reads: Literal["wire", "printed"]
    """Whether it reads the messages only, or also the output of the client."""
    eras: tuple[Era, ...]
    """The eras in which the check applies."""

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
def load_requirements() -> tuple[Requirement, ...]:
    """Return every numbered sentence in the order of the numbers; untested sentences come last."""
    registry = read_yaml("conformance/checks.yaml")
    not_tested = {row["id"]: row for row in registry["not_tested"]}
    sentences = sorted(
        _SENTENCE.findall(read_text("tool-chaining.md")),
        key=lambda found: (found[0] in not_tested, _FAMILIES.index(found[0][3]), found[0]),
    )
    return tuple(
        Requirement(
            id=sentence,
            text=text,
            checks=tuple(row["id"] for row in registry["checks"] if sentence in row["tests"]),
            excluded=not_tested.get(sentence, {}).get("excluded"),
            testable_if=not_tested.get(sentence, {}).get("testable_if"),
        )
        for sentence, text in sentences
    )


@cache
def load_checks() -> Mapping[str, Check]:
    """Return every check by its id, in the order in which the sentences name them."""
    rows = {row["id"]: row for row in read_yaml("conformance/checks.yaml")["checks"]}
    ids = dict.fromkeys(each for sentence in load_requirements() for each in sentence.checks)
    return {
        check_id: Check(
            id=check_id,
            requirements=tuple(each for each in load_requirements() if check_id in each.checks),
            at=row.get("at"),
            judges=row["judges"],
            remedy=row["remedy"],
            reads=row.get("reads", "wire"),
            eras=tuple(Era(each) for each in row.get("spec_versions", Era)),
        )
        for check_id, row in ((each, rows[each]) for each in ids)
    }


def checks_of(side: Side) -> tuple[Check, ...]:
    """Return the checks that judge servers, or clients."""
    return tuple(check for check in load_checks().values() if check.side == side)
