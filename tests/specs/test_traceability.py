"""The sentences of the prose, and the registry of checks, in both directions."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tool_chaining_conformance.requirements import load_checks, load_requirements

from .files import CONFORMANCE, MARKDOWN, SPECS, read_yaml
from .publish import COMMAND, requirements_yaml

pytestmark = pytest.mark.quick

PROSE = (SPECS / "tool-chaining.md").read_text(encoding="utf-8")
KEYWORD = re.compile(r"\b(MUST|SHOULD|MAY|SHALL|REQUIRED|RECOMMENDED|OPTIONAL)\b")
ROWS = {row.id: row for row in load_requirements()}
CHECKS = load_checks().values()


def test_requirements_yaml_is_up_to_date() -> None:
    found = (SPECS / "requirements.yaml").read_text("utf-8")
    assert found == requirements_yaml(), f"it is made from other files; run: {COMMAND}"


def test_the_registry_cites_only_sentences_that_exist() -> None:
    registry = read_yaml(CONFORMANCE / "checks.yaml")
    cited = {name for row in registry["checks"] for name in row["tests"]}
    cited |= {row["id"] for row in registry["not_tested"]}
    assert sorted(cited - set(ROWS)) == []


DROPPED = {
    "D": {2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 16, 17, 18, 21, 22},
    "C": {
        *(2, 5, 8, 10, 11, 15, 16, 17, 18, 19, 22, 23, 25, 26, 27, 29, 30, 31, 37, 38),
        *(34, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 54, 56),
    },
    "S": {2, 4, 6, 7, 9, 10, 11, 13, 15, 18, 19, 21, 22, 24, 28, 29, 30, 31, 32, 35},
}
"""Numbers of sentences that are no more; they are not used again."""


def test_requirement_numbers_are_never_reused() -> None:
    families: dict[str, list[int]] = defaultdict(list)
    for row in load_requirements():
        families[row.id[3]].append(int(row.id[5:]))
    for family, numbers in families.items():
        every = sorted([*numbers, *DROPPED.get(family, set())])
        assert every == list(range(1, len(every) + 1)), family


def test_every_bold_id_is_a_sentence_that_can_be_parsed() -> None:
    assert sorted(re.findall(r"\*\*(TC-[^*]*)\*\*", PROSE)) == sorted(ROWS)


def test_keywords_stand_in_numbered_sentences_only() -> None:
    section = PROSE.split("\n## Specification\n")[1].split("\n## ")[0]
    rest = [line for line in section.splitlines() if not line.startswith("- **TC-")]
    assert [line for line in rest if KEYWORD.search(line)] == []


@pytest.mark.parametrize("name", ROWS)
def test_a_sentence_is_one_sentence_of_one_level(name: str) -> None:
    text = ROWS[name].text
    keywords = set(KEYWORD.findall(text))
    assert keywords == {"MUST"} or keywords <= {"SHOULD", "MAY"}, "MUST, or SHOULD and MAY"
    assert keywords
    assert text.endswith(".")
    assert not re.search(r"\. [A-Z]", text), "one sentence"


def test_a_check_has_one_level() -> None:
    """None has no level: a permission alone is not tested."""
    mixed = [check.id for check in CHECKS if len({row.level for row in check.requirements}) > 1]
    assert mixed == []


HANDED_ON = {f"TC-C-{number}" for number in (24, 32, 33, 35, 36, 53)}
"""Sentences about what a client hands on in the end, which no message shows."""


def test_requirements_on_messages_have_a_check_that_reads_only_messages() -> None:
    by_wire = {row.id for check in CHECKS if check.reads == "wire" for row in check.requirements}
    assert {row.id for row in load_requirements() if row.checks} - by_wire == HANDED_ON


def test_sentences_about_one_side_are_tested_on_that_side() -> None:
    sides = {"S": "tool-chaining-server-", "C": "tool-chaining-client-", "D": "tool-chaining-"}
    for row in load_requirements():
        assert all(check.startswith(sides[row.id[3]]) for check in row.checks), row.id


VECTORS = CONFORMANCE / "directives.json"


@pytest.mark.parametrize("path", [*MARKDOWN, VECTORS], ids=lambda path: path.name)
def test_documents_cite_only_what_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"\bTC-[A-Z]-\d+\b", text)) <= set(ROWS)
    cited = re.findall(r"\btool-chaining-(?:server|client)-[a-z0-9-]*[a-z0-9]", text)
    assert set(cited) <= set(load_checks())


def test_each_threat_is_met_by_a_tested_sentence() -> None:
    rationale = (SPECS / "rationale.md").read_text(encoding="utf-8")
    section = rationale.split("\n## Threats\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| \*\*([^|]+) \| ((?:TC-[DSC]-\d\d(?:, )?)+) \|$", section, re.MULTILINE)
    assert len(lines) > 12
    for threat, sentences in lines:
        assert any(ROWS[name].checks for name in sentences.split(", ")), threat
