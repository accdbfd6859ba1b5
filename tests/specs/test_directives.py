"""The directive vectors cover the rules; what they say is held in `tests/conformance/test_vectors`.

Those for readers that see each name of an object are not, since no parser of ours does.
"""

import json
from typing import Any

import pytest

from tool_chaining_conformance.requirements import load_requirements

from .files import CONFORMANCE, read_json

pytestmark = pytest.mark.quick

VECTORS: list[dict[str, Any]] = read_json(CONFORMANCE / "directives.json")["vectors"]


def has_a_name_twice(text: str) -> bool:
    objects: list[list[tuple[str, Any]]] = []
    json.loads(text, object_pairs_hook=objects.append)
    return any(len(dict(members)) < len(members) for members in objects)


def test_vectors_with_duplicate_names_are_marked() -> None:
    twice = [vector for vector in VECTORS if has_a_name_twice(vector.get("text", "{}"))]
    assert twice == [vector for vector in VECTORS if vector.get("parser") == "duplicates"]
    assert {vector["reading"]["status"] for vector in twice} == {"malformed"}


def test_vectors_have_unique_ids_and_cite_existing_sentences() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    known = {row.id for row in load_requirements()}
    assert {name for vector in VECTORS for name in vector["requirements"]} <= known


@pytest.mark.parametrize("number", [1, 5, 11, 19])
def test_every_rule_on_the_form_of_a_directive_has_a_vector(number: int) -> None:
    assert any(f"TC-D-{number:02d}" in vector["requirements"] for vector in VECTORS)
