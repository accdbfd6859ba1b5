"""The models that read scenario files accept what the formats' JSON Schemas accept."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from banking_server.conformance.client.script import ClientScript, ScriptAnswer
from banking_server.conformance.client.vectors import cases_of
from banking_server.conformance.formats import Registry, Vector
from banking_server.conformance.scenario_file import ScenarioError
from banking_server.conformance.server.draft import _lines
from banking_server.conformance.server.references import filled
from banking_server.conformance.server.scenario import ServerScenario, load_server_scenario
from banking_server.conformance.server.values import given_values
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


def test_what_a_mapping_takes_over_may_stand_in_it_too(tmp_path: Path) -> None:
    merged = "&a {sku: chair, quantity: 500}", "{<<: &b {<<: *a, sku: table}, sku: bench}"
    first, second = loaded(
        tmp_path,
        ("{sku: chair, quantity: 500}", merged[0]),
        ("{sku: chair, quantity: 5}", merged[1]),
    ).steps[:3:2]
    assert first.arguments == {"sku": "chair", "quantity": 500}
    assert second.arguments == {"sku": "bench", "quantity": 500}


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
            "meta: {session:",
            'meta: {session: "${typo}", other:',
            "meta: nothing is called ${typo} here; known are phrase, session, user",
        ),
        (
            "action: accept, value: green",
            'action: accept, value: "${gren}"',
            "step colour: nothing is called ${gren} here",
        ),
        (
            "follow: [{repeatable: true}]",
            'follow: [{repeatable: true, meta: {a: "${b}"}}]',
            "step asked, call 2: nothing is called ${b} here",
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
        ("{value: alice}", "{}", "give either value or environment"),
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


def test_a_follow_up_knows_what_was_captured_before_it(tmp_path: Path) -> None:
    follow = 'follow: [{capture: {team: {text: x}}}, {meta: {a: "${team}"}}]'
    assert loaded(tmp_path, ("follow: [{repeatable: true}]", follow))


def test_a_value_may_be_what_looks_like_a_name(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, ("{value: alice}", '{value: "${HOME}"}'))
    assert given_values(scenario, {})["user"] == "${HOME}"


@pytest.mark.parametrize(
    "mistake",
    [
        {"assert": "called"},
        {"assert": "called", "call": 1, "tool": "x"},
        {"assert": "not_called", "call": 1},
        {"assert": "call_count"},
        {"assert": "call_count", "at_most": 1, "exactly": 1},
        {"assert": "calls_end", "text": "x"},
        {"assert": "declared", "in": "nowhere"},
    ],
    ids=str,
)
def test_both_refuse_a_check_without_the_members_of_its_kind(mistake: dict[str, Any]) -> None:
    script = yaml.safe_load((CONFORMANCE / "client" / "servers.yaml").read_text("utf-8"))
    (check, *others) = script["cases"][0]["checks"]
    script["cases"][0]["checks"] = [{"id": check["id"], "witness": 1, **mistake}, *others]
    assert not schema("client-script").is_valid(script)
    assert not accepts(ClientScript, script)
    script["cases"][0]["checks"] = [{"id": check["id"], "witness": 1, "assert": "calls_end"}]
    assert schema("client-script").is_valid(script)
    assert accepts(ClientScript, script)


# The project's own files


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ({"rounds": [{}]}, "exactly one of result, elicit, error and broken"),
        ({"rounds": [{"broken": "status", "held": True}]}, "go with a result"),
        (
            {"rounds": [{"broken": "status"}, {"broken": "status"}]},
            "only the last round may be anything but a question",
        ),
        (
            {"rounds": [{"elicit": {"key": "a", "message": "b", "requestedSchema": {}}}]},
            "the last round must be no question",
        ),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_an_answer_is_some_questions_and_an_end(mistake: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        ScriptAnswer.model_validate({"tool": "begin", **mistake})


def test_a_case_of_a_vector_that_is_not_there_is_refused() -> None:
    template = {"ids": ["no-such-vector"], "checks": [], "content": []}
    with pytest.raises(ValueError, match="no vector has the id no-such-vector"):
        list(cases_of(template, {}, {}))
    with pytest.raises(ValueError, match="no check cites a sentence of the vector"):
        list(cases_of({**template, "ids": ["tool-and-arguments"]}, {}, {"tool": "relay"}))


def test_a_vector_is_a_text_or_a_value() -> None:
    vectors = json.loads((CONFORMANCE / "directives.json").read_text("utf-8"))
    vector = {**vectors["vectors"][0], "text": "{}", "meta": {}}
    with pytest.raises(ValidationError, match=f"{vector['id']} has either meta or text"):
        Vector.model_validate(vector)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda file: file["checks"].append(file["checks"][0]), "is described twice"),
        (lambda file: file["checks"][0].update(needs="luck"), "needs luck, which needs does not"),
        (
            lambda file: file["not_tested"].append(
                {**file["not_tested"][0], "id": file["checks"][0]["tests"][0]}
            ),
            "is tested and not tested",
        ),
    ],
    ids=["twice", "needs", "both"],
)
def test_the_table_of_checks_agrees_with_itself(
    change: Callable[[Any], None], sentence: str
) -> None:
    file = yaml.safe_load((CONFORMANCE / "checks.yaml").read_text("utf-8"))
    change(file)
    with pytest.raises(ValidationError, match=sentence):
        Registry.model_validate(file)


# Secrets that are too short to be kept


@pytest.mark.parametrize("value", ["abc", "7", "123", "[long-enough, abc]"])
def test_a_secret_that_stands_everywhere_is_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is secret and shorter than 4 characters") as failed:
        loaded(tmp_path, ("{value: alice}", f"{{value: {value}, secret: true}}"))
    assert "abc" not in str(failed.value)


def test_so_is_one_from_the_environment(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, ("{value: alice}", "{environment: SHOP_USER}"))
    assert given_values(scenario, {"SHOP_USER": "alice"})["user"] == "alice"
    with pytest.raises(ScenarioError, match="SHOP_USER is secret and shorter than 4 characters"):
        given_values(scenario, {"SHOP_USER": "xyz"})


# A first file, made from a list of tools


ODD_TOOL = {
    "name": "true",
    "inputSchema": {
        "properties": {
            "a: b": {"enum": ["x: #"]},
            "says": {"default": "${HOME} and ${b}"},
            "words": {"type": "array", "minItems": 3, "items": {"type": "string"}},
            "mark": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
        "required": ["a: b", "says", "words", "mark"],
    },
}


def test_a_first_file_can_be_used_as_it_stands(tmp_path: Path) -> None:
    text = "\n".join(_lines({"name": "1e3"}, [ODD_TOOL, {"name": "${x}"}]))
    assert "has a pattern, which the placeholders do not follow" in text
    path = tmp_path / "first.yaml"
    path.write_text(text)
    scenario = load_server_scenario(path)
    (step,) = scenario.steps
    assert (scenario.name, step.id, step.call) == ("1e3", "true", "true")
    assert filled(step.arguments, given_values(scenario, {})) == {
        "a: b": "x: #",
        "says": "${HOME} and ${b}",
        "words": ["TEXT"] * 3,
        "mark": "TEXT",
    }
