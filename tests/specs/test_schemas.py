"""Schemas are valid, their examples and all data files are valid against them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tool_chaining_conformance.client.checks import KINDS
from tool_chaining_conformance.client.script import ClientScript
from tool_chaining_conformance.server.scenario import ServerScenario

from .files import (
    CLIENT_SCRIPTS,
    CONFORMANCE,
    MARKDOWN,
    SCHEMAS,
    SERVER_SCENARIOS,
    SPECS,
    code_blocks,
    read_json,
    read_yaml,
    schema,
)

pytestmark = pytest.mark.quick

NEXT_TOOL = read_json(SPECS / "next-tool.schema.json")


def problems(instance: Any, schema_: Any) -> list[str]:
    return [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(schema_).iter_errors(instance)
    ]


def part(name: str) -> dict[str, Any]:
    """A definition of `next-tool.schema.json`, on its own."""
    return {"$ref": f"#/$defs/{name}", "$defs": NEXT_TOOL["$defs"]}


def examples(node: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """Where a schema has examples, and each of them."""
    if isinstance(node, dict):
        if isinstance(node.get("examples"), list):
            for example in node["examples"]:
                yield path, example
        for key, child in node.items():
            if key != "examples":
                yield from examples(child, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_is_valid_and_so_are_its_examples(path: Path) -> None:
    document = read_json(path)
    Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"].endswith(f"/{path.name}")
    registry: Registry[Any] = Registry().with_resource("urn:s", Resource.from_contents(document))
    for pointer, example in examples(document):
        validator = Draft202012Validator({"$ref": f"urn:s{pointer}"}, registry=registry)
        assert [error.message for error in validator.iter_errors(example)] == [], pointer


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (SPECS / "requirements.yaml", "requirements"),
        (CONFORMANCE / "checks.yaml", "checks"),
        (CONFORMANCE / "directives.json", "directives"),
        *((script, "client-script") for script in CLIENT_SCRIPTS),
        *((scenario, "server-scenario") for scenario in SERVER_SCENARIOS),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_a_data_file_is_valid(path: Path, name: str) -> None:
    instance = read_json(path) if path.suffix == ".json" else read_yaml(path)
    assert problems(instance, schema(name)) == []


def nested(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for child in value.values():
            yield from nested(child, key)
    elif isinstance(value, list):
        for child in value:
            yield from nested(child, key)


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_json_in_documents_parses_and_keeps_the_rules(path: Path) -> None:
    for block in code_blocks(path.read_text(encoding="utf-8"), "json"):
        message = json.loads(block)
        for directive in nested(message, "nextTool"):
            assert problems(directive, part("emittedDirective")) == []
        for capabilities in [*nested(message, "extensions"), *nested(message, "experimental")]:
            assert problems(capabilities["com.example/tool-chaining"], part("settings")) == []
        for meta in (
            meta for params in nested(message, "params") for meta in nested(params, "_meta")
        ):
            if "com.example/tool-chaining" in meta:
                assert problems(meta["com.example/tool-chaining"], part("provenance")) == []


@pytest.mark.parametrize(
    ("name", "model"), [("server-scenario", ServerScenario), ("client-script", ClientScript)]
)
def test_a_schema_has_the_members_that_the_suite_reads(
    name: str, model: type[ServerScenario | ClientScript]
) -> None:
    def members(document: Any) -> dict[str, set[str]]:
        parts = {"": document, **document["$defs"]}
        return {
            part: set(each["properties"]) for part, each in parts.items() if "properties" in each
        }

    assert members(schema(name)) == members(model.model_json_schema())


def test_the_kinds_of_checks_are_those_that_scripts_may_name() -> None:
    assert_ = schema("client-script")["$defs"]["ScriptCheck"]["properties"]["assert"]
    assert sorted(KINDS) == sorted(assert_["enum"])
    assert all(judge.__doc__ for judge in KINDS.values())
