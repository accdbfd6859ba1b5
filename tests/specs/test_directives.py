"""The directive vectors agree with the JSON Schema."""

from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .files import (
    CONFORMANCE,
    SENTENCES,
    SPECS,
    Twice,
    numbers,
    read_json,
    strictly_read,
    writable,
)

VECTORS: list[dict[str, Any]] = read_json(CONFORMANCE / "directives.json")["vectors"]
DEFINITIONS = read_json(SPECS / "next-tool.schema.json")["$defs"]


def meets(name: str, value: Any) -> bool:
    definition = {"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}
    return Draft202012Validator(definition).is_valid(value)


def same_type_and_value(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def directive_of(vector: dict[str, Any]) -> tuple[bool, Any, bool]:
    """Whether there is a directive, the directive, and whether it can be one at all."""
    try:
        meta = strictly_read(vector["text"]) if "text" in vector else vector["meta"] or {}
    except Twice:
        return True, None, False
    return "nextTool" in meta, meta.get("nextTool"), writable(meta)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_vector_agrees_with_the_schema_and_the_rules_beside_it(vector: dict[str, Any]) -> None:
    there, directive, possible = directive_of(vector)
    reading = vector["reading"]
    if not there:
        assert reading == {"status": "absent"}
        assert vector["emittable"]
        return
    valid = (
        possible
        and meets("directive", directive)
        and (
            not {"tool", "name"} <= directive.keys()
            or same_type_and_value(directive["tool"], directive["name"])
        )
    )
    assert reading["status"] == ("valid" if valid else "malformed")
    kept = all(
        Decimal(repr(float(number))) == number for number in numbers(vector.get("text", "{}"))
    )
    assert vector["emittable"] == (possible and kept and meets("emittedDirective", directive))
    if valid:
        title = directive.get("title")
        used = isinstance(title, str) and 1 <= len(title) <= 200
        assert reading == {
            "status": "valid",
            "tool": directive.get("tool", directive.get("name")),
            "arguments": directive.get("arguments", {}),
            "alias": "name" in directive,
            **({"title": title} if used else {}),
        }


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_vector_is_text_only_where_a_parser_may_lose_something(vector: dict[str, Any]) -> None:
    _, _, possible = directive_of(vector)
    if "text" not in vector:
        assert possible
    twice = "text" in vector and not can_be_read(vector["text"])
    assert (vector.get("parser") == "duplicates") == twice


def can_be_read(text: str) -> bool:
    try:
        strictly_read(text)
    except Twice:
        return False
    return True


def test_vectors_have_ids_of_their_own_and_cite_sentences_that_exist() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    known = {name for name, _ in SENTENCES}
    assert {name for vector in VECTORS for name in vector["requirements"]} <= known


@pytest.mark.parametrize("number", [*range(1, 12), *range(17, 21)])
def test_every_rule_on_the_form_of_a_directive_has_a_vector(number: int) -> None:
    assert any(f"TC-D-{number:02d}" in vector["requirements"] for vector in VECTORS)


def test_nothing_malformed_is_emittable() -> None:
    assert [
        v["id"] for v in VECTORS if v["emittable"] and v["reading"]["status"] == "malformed"
    ] == []
