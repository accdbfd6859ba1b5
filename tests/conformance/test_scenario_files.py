"""A mistake in a scenario file is said with the file and its place."""

from pathlib import Path

import pytest

from tool_chaining_conformance.errors import ScenarioError
from tool_chaining_conformance.server.scenario import load_server_scenario

from .support import ONE_STEP, SHOP

pytestmark = pytest.mark.quick


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
        (ONE_STEP.replace("call:", "cal:"), "steps.0: there is no member 'cal'; there are meta, "),
        (
            ONE_STEP + "    elicitation: [{value: red}]",
            "steps.0.elicitation.0: there is no member 'value'; there are action, content",
        ),
        ("", "is empty; it must be a mapping, whose members are name, description, "),
        (
            ONE_STEP + "    wait_seconds: 61",
            "steps.0.wait_seconds: must be less than or equal to 60",
        ),
        (
            ONE_STEP + "    follow: {repeatable: true}",
            "steps.0.follow: must be true, or a list of entries such as [{repeatable: true}, {}]",
        ),
        ("name: one\ndescription: One.", "steps: is missing"),
        (ONE_STEP + "    capture: {x: {text: '('}}", "not a regular expression"),
    ],
)
def test_a_mistake_in_a_scenario_file_is_named(text: str, sentence: str, tmp_path: Path) -> None:
    assert sentence in complaint(text, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "sku: chair, quantity: 500",
            'sku: "${chiar}", quantity: 500',
            "step large-order: no value has the name ${chiar} here; known: phrase, session, user",
        ),
        (
            "    caller: stranger",
            "    caller: strangr",
            "step stranger: there is no caller 'strangr'; callers has stranger",
        ),
        (
            "{value: alice}",
            "{value: alice, environment: ALICE}",
            "give either value or environment",
        ),
        ("    refused: true", "    refused: true\n    follow: true", "has nothing to follow"),
        ("{text: 'session", "{pointer: /a, text: 'session", "give either pointer or text"),
        (
            "values:",
            'spec_versions: ["2025-11-25", "2025-11-25"]\nvalues:',
            "spec_versions: has 2025-11-25 twice",
        ),
    ],
    ids=lambda text: text[-20:],
)
def test_a_mistake_in_names_is_said_with_its_step(
    old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    text = SHOP.read_text()
    assert old in text
    assert sentence in complaint(text.replace(old, new), tmp_path)
