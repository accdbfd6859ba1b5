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


def test_a_date_in_a_scenario_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "dated.yaml"
    path.write_text(SHOP.read_text().replace("sku: chair", "sku: 2026-12-24"))
    scenario = load_server_scenario(path)
    assert scenario.steps[0].arguments["sku"] == "2026-12-24"
