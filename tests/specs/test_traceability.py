"""The prose, `requirements.yaml` and the checks say the same, in both directions."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

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
    checks_of,
    normative_section,
    read_yaml,
)

TEXTS = dict(SENTENCES)
ROWS = {row["id"]: row for row in REQUIREMENTS}


def test_every_sentence_of_the_prose_has_a_row_with_its_very_words() -> None:
    assert {name: ROWS.get(name, {}).get("text") for name in TEXTS} == TEXTS


def test_every_row_quotes_a_sentence_of_the_prose() -> None:
    assert [row["id"] for row in REQUIREMENTS if TEXTS.get(row["id"]) != row["text"]] == []


def test_ids_are_unique_and_contiguous_in_reading_order() -> None:
    families: dict[str, list[int]] = defaultdict(list)
    for name, _ in SENTENCES:
        families[name[3]].append(int(name[5:]))
    assert {family: list(range(1, len(of) + 1)) for family, of in families.items()} == families
    assert len(ROWS) == len(REQUIREMENTS)


def test_every_bold_id_is_a_sentence_that_can_be_parsed() -> None:
    assert re.findall(r"\*\*(TC-[^*]*)\*\*", PROSE) == [name for name, _ in SENTENCES]


def test_keywords_stand_in_numbered_sentences_only() -> None:
    rest = SENTENCE.sub("", normative_section(PROSE))
    assert [line for line in rest.splitlines() if KEYWORD.search(line)] == []


def test_every_sentence_stands_in_the_specification_section() -> None:
    assert SENTENCE.findall(normative_section(PROSE)) == SENTENCES


@pytest.mark.parametrize(("name", "text"), SENTENCES)
def test_a_sentence_is_one_sentence_of_one_level(name: str, text: str) -> None:
    assert len(set(KEYWORD.findall(text))) == 1, "one of MUST, SHOULD, MAY"
    assert text.endswith(".")
    assert not re.search(r"\. [A-Z]", text), "one sentence"


def test_rows_that_are_tested_come_first() -> None:
    tested = ["check" in row for row in REQUIREMENTS]
    assert tested == sorted(tested, reverse=True)


def test_a_check_has_one_level() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    for row in REQUIREMENTS:
        for check in checks_of(row):
            levels[check] |= set(KEYWORD.findall(row["text"]))
    assert {check: of for check, of in levels.items() if len(of) != 1} == {}


def test_sentences_about_one_side_are_tested_on_that_side() -> None:
    sides = {"S": "tool-chaining-server-", "C": "tool-chaining-client-", "D": "tool-chaining-"}
    wrong = [
        (row["id"], check)
        for row in REQUIREMENTS
        for check in checks_of(row)
        if not check.startswith(sides[row["id"][3]])
    ]
    assert wrong == []


def test_every_check_is_described_once() -> None:
    described = [check["id"] for check in read_yaml(CONFORMANCE / "checks.yaml")["checks"]]
    assert len(described) == len(set(described))
    assert set(described) == CHECKS


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_documents_cite_only_what_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(REQUIREMENT_ID.findall(text)) <= set(TEXTS)
    assert set(CHECK_ID.findall(text)) <= CHECKS


def test_rows_cite_only_sentences_that_exist() -> None:
    cited = {name for row in REQUIREMENTS for name in REQUIREMENT_ID.findall(str(row))}
    assert cited <= set(TEXTS)


def test_each_line_of_the_security_table_names_a_check_of_its_requirement() -> None:
    section = PROSE.split("\n## Security Implications\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\|[^|]*\| (TC-[A-Z]-\d\d) \| ([^|]+) \|$", section, re.MULTILINE)
    assert len(lines) > 20
    wrong = [
        (name, cell)
        for name, cell in lines
        if not (
            "excluded" in ROWS[name]
            if cell.startswith("excluded")
            else cell.strip("`") in checks_of(ROWS[name])
        )
    ]
    assert wrong == []


def test_the_readme_says_what_every_server_check_needs() -> None:
    readme = (CONFORMANCE / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Server scenarios\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (`[^|]+`) \| [^|]+ \|$", section, re.MULTILINE)
    named = [
        f"tool-chaining-server-{name}" for line in lines for name in re.findall(r"`([^`]+)`", line)
    ]
    assert len(named) == len(set(named))
    assert set(named) == {check for check in CHECKS if check.startswith("tool-chaining-server-")}
