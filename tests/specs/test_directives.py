"""The directive vectors cover the rules; what they say is held in `tests/conformance/test_vectors`.

Those for readers that see each name of an object are not, since no parser of ours does.
"""

from typing import Any

import pytest

from .files import CONFORMANCE, SENTENCES, Twice, read_json, strictly_read

pytestmark = pytest.mark.quick

VECTORS: list[dict[str, Any]] = read_json(CONFORMANCE / "directives.json")["vectors"]


def test_a_vector_for_such_readers_has_a_name_twice_and_no_other_has() -> None:
    twice = set()
    for vector in VECTORS:
        try:
            strictly_read(vector.get("text", "{}"))
        except Twice:
            twice.add(vector["id"])
    assert twice == {v["id"] for v in VECTORS if v.get("parser") == "duplicates"}
    refused = {v["reading"]["status"] for v in VECTORS if v["id"] in twice}
    assert refused == {"malformed"}


def test_vectors_have_ids_of_their_own_and_cite_sentences_that_exist() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    known = {name for name, _ in SENTENCES}
    assert {name for vector in VECTORS for name in vector["requirements"]} <= known


@pytest.mark.parametrize("number", [1, 5, 11, 19])
def test_every_rule_on_the_form_of_a_directive_has_a_vector(number: int) -> None:
    assert any(f"TC-D-{number:02d}" in vector["requirements"] for vector in VECTORS)
