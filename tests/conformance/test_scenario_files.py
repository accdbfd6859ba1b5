"""The models that read scenario files accept what the formats' JSON Schemas accept."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from banking_server.conformance.client.script import ClientScript
from banking_server.conformance.scenario_file import ScenarioError
from banking_server.conformance.server.scenario import ServerScenario, load_server_scenario
from banking_server.packaged import packaged

from .support import SHOP

CONFORMANCE = packaged("specs") / "conformance"


def schema(name: str) -> Draft202012Validator:
    path = CONFORMANCE / "schemas" / f"{name}.schema.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8")))


def accepts(model: type[BaseModel], value: Any) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


FILES: list[tuple[Path, str, type[BaseModel]]] = [
    *((path, "client-script", ClientScript) for path in (CONFORMANCE / "client").glob("*.yaml")),
    *(
        (path, "server-scenario", ServerScenario)
        for path in [SHOP, *(CONFORMANCE / "server").glob("*.yaml")]
    ),
]


@pytest.mark.parametrize(("path", "name", "model"), FILES, ids=lambda value: str(value)[-20:])
def test_the_files_meet_both(path: Path, name: str, model: type[BaseModel]) -> None:
    content = yaml.safe_load(path.read_text("utf-8"))
    assert schema(name).is_valid(content)
    assert accepts(model, content)


def mistakes(value: Any) -> Iterator[Any]:
    """Yield copies of a file, each with one mistake that its format rules out."""
    for key in value:
        if key not in ("environment", "setup", "other_server", "documents", "answers"):
            wrong = copy.deepcopy(value)
            wrong[key] = -7
            yield wrong
    yield {**value, "unheard_of": 1}
    for part in ("steps", "cases", "tools"):
        if part in value:
            yield {**value, part: []}
            yield {**value, part: [{**value[part][0], "unheard_of": 1}]}
            yield {**value, part: [{}]}


MISTAKES = [
    pytest.param(wrong, name, model, id=f"{name}-{number}")
    for path, name, model in (FILES[0], FILES[-1])
    for number, wrong in enumerate(mistakes(yaml.safe_load(path.read_text("utf-8"))))
]


@pytest.mark.parametrize(("wrong", "name", "model"), MISTAKES)
def test_both_refuse_the_same_mistakes(wrong: Any, name: str, model: type[BaseModel]) -> None:
    assert not schema(name).is_valid(wrong)
    assert not accepts(model, wrong)


# Names that stand for values


def loaded(tmp_path: Path, *changes: tuple[str, str]) -> Any:
    text = SHOP.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.yaml"
    path.write_text(text)
    return load_server_scenario(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "sku: chair, quantity: 500",
            'sku: "${chiar}", quantity: 500',
            "step large-order: nothing is called ${chiar} here; known are phrase, session, user",
        ),
        (
            'phrase: "${phrase}"',
            'phrase: "${session}"',
            "step sign-in: nothing is called ${session} here; known are phrase, user",
        ),
        (
            'caller: stranger\n    call: notify_team\n    arguments: {order: "7"}',
            'caller: stranger\n    call: notify_team\n    arguments: {order: "${session}"}',
            "step stranger: nothing is called ${session} here; known are phrase, user",
        ),
        (
            "    caller: stranger",
            "    caller: strangr",
            "step stranger: there is no caller 'strangr'; there are stranger under callers",
        ),
        (
            "{value: alice}",
            "{value: alice, environment: ALICE}",
            "give either value or environment",
        ),
        ("    refused: true", "    refused: true\n    follow: true", "has nothing to follow"),
        ("{text: 'session", "{pointer: /a, text: 'session", "give either pointer or text"),
        ("value: green}", "value: green, content: {}}", "give either content or value, not both"),
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
    with pytest.raises(ScenarioError) as failed:
        loaded(tmp_path, (old, new))
    assert sentence in str(failed.value)
    assert str(failed.value).startswith(f"{tmp_path}/changed.yaml: ")
    assert "\n" not in str(failed.value)


# The project's own files


# Secrets that are too short to be kept


@pytest.mark.parametrize("value", ["abc", "7", "123", "[long-enough, abc]"])
def test_a_secret_that_stands_everywhere_is_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is secret and shorter than 4 characters") as failed:
        loaded(tmp_path, ("{value: alice}", f"{{value: {value}, secret: true}}"))
    assert "abc" not in str(failed.value)


# A first file, made from a list of tools
