"""The directive vectors agree with the JSON Schema."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .files import CONFORMANCE, SENTENCES, SPECS, read_json

VECTORS: list[dict[str, Any]] = read_json(CONFORMANCE / "directives.json")["vectors"]
DEFINITIONS = read_json(SPECS / "next-tool.schema.json")["$defs"]


def meets(name: str, value: Any) -> bool:
    definition = {"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}
    return Draft202012Validator(definition).is_valid(value)


def same_type_and_value(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_vector_agrees_with_the_schema(vector: dict[str, Any]) -> None:
    meta, reading = vector["meta"] or {}, vector["reading"]
    if "nextTool" not in meta:
        assert reading == {"status": "absent"}
        assert vector["emittable"]
        return
    directive = meta["nextTool"]
    valid = meets("directive", directive) and (
        not {"tool", "name"} <= directive.keys()
        or same_type_and_value(directive["tool"], directive["name"])
    )
    assert reading["status"] == ("valid" if valid else "malformed")
    assert vector["emittable"] == meets("emittedDirective", directive)
    if valid:
        assert reading == {
            "status": "valid",
            "tool": directive.get("tool", directive.get("name")),
            "arguments": directive.get("arguments", {}),
            "alias": "name" in directive,
        }


def test_vectors_have_ids_of_their_own_and_cite_sentences_that_exist() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    known = {name for name, _ in SENTENCES}
    assert {name for vector in VECTORS for name in vector["requirements"]} <= known


@pytest.mark.parametrize("number", range(1, 12))
def test_every_rule_on_the_form_of_a_directive_has_a_vector(number: int) -> None:
    assert any(f"TC-D-{number:02d}" in vector["requirements"] for vector in VECTORS)


def test_nothing_malformed_is_emittable() -> None:
    assert [
        v["id"] for v in VECTORS if v["emittable"] and v["reading"]["status"] == "malformed"
    ] == []
