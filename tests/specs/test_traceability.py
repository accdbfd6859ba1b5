"""The sentences of the prose, and the registry of checks, in both directions."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tool_chaining_conformance.client.script import load_client_scripts

from .files import (
    CHECK_ID,
    CHECKS,
    CONFORMANCE,
    KEYWORD,
    MARKDOWN,
    PROSE,
    REQUIREMENT_ID,
    REQUIREMENTS,
    SENTENCE,
    SENTENCES,
    SPECS,
    checks_of,
    normative_section,
    read_yaml,
)

pytestmark = pytest.mark.quick

TEXTS = dict(SENTENCES)
REGISTRY = read_yaml(CONFORMANCE / "checks.yaml")
ROWS = {row["id"]: row for row in REQUIREMENTS}


def test_every_sentence_is_tested_or_it_is_said_why_not() -> None:
    untold = [row["id"] for row in REQUIREMENTS if "check" not in row and "excluded" not in row]
    assert untold == []


def test_the_registry_cites_only_sentences_that_exist() -> None:
    cited = {name for row in REGISTRY["checks"] for name in row["tests"]}
    cited |= {row["id"] for row in REGISTRY["not_tested"]}
    assert sorted(cited - set(TEXTS)) == []


DROPPED = {
    "D": {2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 16, 17, 18, 20, 21, 22},
    "C": {
        *(2, 5, 10, 11, 15, 16, 18, 19, 23, 25, 26, 27, 29, 30, 31, 37, 38),
        *(34, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 54, 56),
    },
    "S": {2, 4, 6, 7, 9, 10, 11, 13, 15, 18, 19, 21, 22, 24, 28, 29, 30, 31, 32},
}
"""Numbers of sentences that are no more; they are not used again."""


def test_ids_are_unique_and_no_number_is_left_out() -> None:
    families: dict[str, list[int]] = defaultdict(list)
    for name, _ in SENTENCES:
        families[name[3]].append(int(name[5:]))
    for family, numbers in families.items():
        every = sorted([*numbers, *DROPPED.get(family, set())])
        assert every == list(range(1, len(every) + 1)), family


def test_every_bold_id_is_a_sentence_that_can_be_parsed() -> None:
    assert re.findall(r"\*\*(TC-[^*]*)\*\*", PROSE) == [name for name, _ in SENTENCES]


def test_keywords_stand_in_numbered_sentences_only() -> None:
    rest = SENTENCE.sub("", normative_section(PROSE))
    assert [line for line in rest.splitlines() if KEYWORD.search(line)] == []


@pytest.mark.parametrize(("name", "text"), SENTENCES)
def test_a_sentence_is_one_sentence_of_one_level(name: str, text: str) -> None:
    keywords = set(KEYWORD.findall(text))
    assert keywords == {"MUST"} or keywords <= {"SHOULD", "MAY"}, "MUST, or SHOULD and MAY"
    assert keywords
    assert text.endswith(".")
    assert not re.search(r"\. [A-Z]", text), "one sentence"


def test_a_permission_is_not_tested() -> None:
    only_may = [row for row in REQUIREMENTS if set(KEYWORD.findall(row["text"])) == {"MAY"}]
    assert [row["id"] for row in only_may if "check" in row] == []


def test_a_check_has_one_level() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    for row in REQUIREMENTS:
        for check in checks_of(row):
            levels[check] |= set(KEYWORD.findall(row["text"])) - {"MAY"}
    assert {check: of for check, of in levels.items() if len(of) != 1} == {}


def test_what_a_check_of_clients_reads_is_what_its_scripts_assert() -> None:
    reads: dict[str, set[str]] = defaultdict(set)
    for script in load_client_scripts():
        for case in script.cases:
            for check in case.checks:
                reads[check.id].add("printed" if check.kind.startswith("printed") else "wire")
    said = {row["id"]: {row.get("reads", "wire")} for row in REGISTRY["checks"]}
    assert {check: said[check] for check in reads} == reads


HANDED_ON = {f"TC-C-{number}" for number in (24, 32, 33, 35, 36, 53)}
"""Sentences about what a client hands on in the end, which no message shows."""


def test_what_messages_show_has_a_check_that_reads_them_alone() -> None:
    by_wire = {
        name
        for row in REGISTRY["checks"]
        if row.get("reads", "wire") == "wire"
        for name in row["tests"]
    }
    assert {row["id"] for row in REQUIREMENTS if "check" in row} - by_wire == HANDED_ON


def test_sentences_about_one_side_are_tested_on_that_side() -> None:
    sides = {"S": "tool-chaining-server-", "C": "tool-chaining-client-", "D": "tool-chaining-"}
    wrong = [
        (row["id"], check)
        for row in REQUIREMENTS
        for check in checks_of(row)
        if not check.startswith(sides[row["id"][3]])
    ]
    assert wrong == []


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_documents_cite_only_what_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(REQUIREMENT_ID.findall(text)) <= set(TEXTS)
    assert set(CHECK_ID.findall(text)) <= CHECKS


def test_against_each_threat_there_is_a_sentence_that_is_tested() -> None:
    rationale = (SPECS / "rationale.md").read_text(encoding="utf-8")
    section = rationale.split("\n## Threats\n")[1].split("\n## ")[0]
    lines = re.findall(
        r"^\| \*\*([^|]+) \| ((?:TC-[DSC]-\d\d(?:, )?)+) \| ([^|]+) \|$", section, re.MULTILINE
    )
    assert len(lines) > 12
    for threat, sentences, named in lines:
        checks = {f"tool-chaining-{name}" for name in re.findall("`([^`]+)`", named)}
        tested = {check for name in sentences.split(", ") for check in checks_of(ROWS[name])}
        assert checks, threat
        assert checks <= tested, threat
