"""A mistake in a scenario file is said with the file and its place."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from tool_chaining_conformance.errors import ScenarioError
from tool_chaining_conformance.scenario_file import load
from tool_chaining_conformance.server.scenario import load_server_scenario

from .support import ONE_STEP, SHOP

pytestmark = pytest.mark.quick


def shop(old: str, new: str) -> str:
    """Return the scenario of the shop with a mistake."""
    text = SHOP.read_text()
    assert old in text
    return text.replace(old, new)


def complaint(text: str, folder: Path) -> str:
    """Return the one line that says what is wrong with a file, without the file's name."""
    path = folder / "changed.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as failed:
        load_server_scenario(path)
    said = str(failed.value)
    assert "\n" not in said
    assert said.startswith(f"{path}: ")
    return said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: [", "not YAML"),
        ("name: " + "[" * 1000, "it is nested too deeply"),
        (
            ONE_STEP + "    call: ask_manager",
            "line 8, column 5: the key 'call' occurs twice, first in line 6; remove or rename one",
        ),
        (ONE_STEP + "    refused: true", "steps.0: a refused step needs repeatable: true"),
        (
            ONE_STEP.replace("call:", "cal:"),
            "steps.0: there is no member 'cal'; there are elicitation, ",
        ),
        (
            ONE_STEP + "    elicitation: [{value: red}]",
            "steps.0.elicitation.0: there is no member 'value'; there are action, content",
        ),
        ("", "is empty; it must be a mapping, whose members are name, description, "),
        (ONE_STEP + "    wait_seconds: 61", "must be less than or equal to 60"),
        (ONE_STEP + "    elicitation: {a: b}", "line 8: steps.0.elicitation: must be a list"),
        (ONE_STEP + "    capture: [a]", "line 8: steps.0.capture: must be a mapping"),
        (ONE_STEP + "    follow: [{repeatable: 7}]", "follow.0.repeatable: must be true or false"),
        (
            ONE_STEP + "    follow: {repeatable: true}",
            "steps.0.follow: must be true, or a list of entries such as [{repeatable: true}, {}]",
        ),
        ("name: one\ndescription: One.", "line 1: steps is missing"),
        (ONE_STEP + "    capture: {x: {text: '('}}", "not a regular expression"),
        (
            shop("sku: chair, quantity: 500", 'sku: "${chiar}", quantity: 500'),
            "step large-order: no value has the name ${chiar} here; known: phrase, session, user",
        ),
        (
            shop("    caller: stranger", "    caller: strangr"),
            "step stranger: there is no caller 'strangr'; callers has stranger",
        ),
        (
            shop("{value: alice}", "{value: alice, environment: ALICE}"),
            "give either value or environment",
        ),
        (shop("    refused: true", "    refused: true\n    follow: true"), "has nothing to follow"),
        (shop("{text: 'session", "{pointer: /a, text: 'session"), "give either pointer or text"),
    ],
    ids=lambda text: text[-20:],
)
def test_a_mistake_in_a_scenario_file_is_named(text: str, sentence: str, tmp_path: Path) -> None:
    assert sentence in complaint(text, tmp_path)


ODD = (
    *("00123", "12:30", "12:30:45", "2026-11-27", "2026-11-27T12:30:00Z", "1_000", "+1", "0x1f"),
    *("0o17", "0b1", "1.", ".5", ".inf", ".nan", "-.INF", "1e", "0755", "-007", "1.2.3"),
    *("no", "NO", "Off", "on", "y", "Yes", "True", "FALSE", "~", "Null", "NULL", "=", "NaN"),
)
"""Text that YAML 1.1 reads as something else, or nearly."""


class File(BaseModel):
    """A file whose members are any values."""

    value: list[object]


@given(st.sampled_from(ODD) | st.from_regex(r"[0-9.-][0-9.:eE_xo-]{0,8}[0-9]", fullmatch=True))
@example("1e5")
@example("-0.5E-07")
@example("true")
@example("null")
def test_a_plain_value_is_what_it_is_in_json_or_text(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "values.yaml"
    path.write_text(f"value:\n- {text}\n- {{a: {text}}}\n- {text}")
    try:
        expected = json.loads(text) if text != "NaN" else text
    except ValueError:
        expected = text
    assert repr(load(path, File).value) == repr([expected, {"a": expected}, expected])
