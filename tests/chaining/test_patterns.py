"""Regular expressions of ECMA-262, as the validator understands them.

`patterns.json` says what Node.js 20 makes of them with the flag `u`: which are none, and which
texts the others match.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.patterns import NotReadable, read

pytestmark = pytest.mark.quick

TABLE = json.loads(Path(__file__).with_name("patterns.json").read_text("utf-8"))


def problem(pattern: str, text: str) -> str | None:
    return argument_problem({"properties": {"a": {"pattern": pattern}}}, {"a": text})


@pytest.mark.parametrize("row", TABLE["valid"], ids=lambda row: ascii(row["pattern"]))
def test_texts_match_as_in_ecma_262(row: dict[str, Any]) -> None:
    unlike = "arguments.a: must satisfy pattern"
    wrong = [text for text in row["matches"] if problem(row["pattern"], text)]
    wrong += [text for text in row["others"] if unlike not in str(problem(row["pattern"], text))]

    assert wrong == []


@pytest.mark.parametrize("pattern", TABLE["invalid"], ids=ascii)
def test_what_is_not_ecma_262_cannot_be_compiled(pattern: str) -> None:
    assert "not valid JSON Schema" in str(problem(pattern, "a"))


@pytest.mark.parametrize("pattern", [r"^(?:(a)|b)*\1$", r"(?<=(a))\1", r"^(?:x(a)?)+\1$"])
def test_what_the_engine_would_read_otherwise_is_refused(pattern: str) -> None:
    """ECMA-262 forgets a group in each round of a repetition, and looks behind backwards."""
    assert problem(pattern, "a") is not None


@pytest.mark.parametrize(
    "pattern", ["(" * 60 + ")" * 60, "a" * 20_000, "(?:a{1000}){1000}", "a{0,99999999999}"]
)
def test_what_is_too_large_is_not_read(pattern: str) -> None:
    with pytest.raises(NotReadable):
        read(pattern)


def test_the_sentence_quotes_the_pattern_of_the_schema() -> None:
    assert problem(r"^\d\w$", "x") == r'arguments.a: must satisfy pattern "^\\d\\w$"'
    named = {"patternProperties": {r"^\d$": {"type": "integer"}, "^[0-9]$": {"minimum": 5}}}
    assert argument_problem(named, {"1": "x"}) == (
        "arguments.1: must be a whole number such as 25, without quotation marks"
    )
    assert argument_problem(named, {"1": 4}) == "arguments.1: must be at least 5"
    assert argument_problem(named, {"1": 5}) is None


def test_only_what_is_a_pattern_is_read_as_one() -> None:
    schema = {
        "properties": {
            "pattern": {"const": {"pattern": r"\d"}},
            "const": {"pattern": r"^\d$"},
            "patternProperties": {"enum": [{"patternProperties": {"(": 1}}]},
        },
        "default": {"pattern": "("},
    }
    good = {"pattern": {"pattern": r"\d"}, "const": "1"}

    assert argument_problem(schema, good) is None
    assert argument_problem(schema, {"pattern": {"pattern": "[0-9]"}}) is not None
    assert argument_problem(schema, {"const": "٣"}) is not None
    assert argument_problem(schema, {"patternProperties": {"patternProperties": {"(": 1}}}) is None
