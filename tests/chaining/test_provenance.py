"""Reading and writing what a follow-up request says about its chain."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from banking_server.chaining import IDENTIFIER, Provenance, read_provenance

from .support import JSON, PROPERTY

FIRST = {"chainId": "c", "level": 1}
LATER = {"chainId": "c", "level": 2, "previousTool": "t"}


def test_what_is_not_known_is_ignored_and_a_whole_number_is_one() -> None:
    wire = {"chainId": "c", "level": 1.0, "more": [1]}
    assert read_provenance({"other": 1, IDENTIFIER: wire}) == Provenance(chain_id="c", level=1)


@pytest.mark.parametrize(
    "wire",
    [
        *(None, [], "c", {}, {"chainId": "c"}, {"level": 1}, {"chain_id": "c", "level": 1}),
        *({**FIRST, "chainId": id_} for id_ in ("", "c" * 129, 5, None, "\ud800")),
        *({**FIRST, "level": level} for level in (0, -1, True, "1", 1.5, None, 2)),
        *({**FIRST, "previousTool": tool} for tool in (None, "t")),
        *({**LATER, "previousTool": tool} for tool in (None, "", 5)),
        {**LATER, "level": 1e400},
    ],
)
def test_malformed_is_ignored(wire: object) -> None:
    assert read_provenance({IDENTIFIER: wire}) is None


@PROPERTY
@given(
    chain_id=st.text(min_size=1, max_size=128),
    level=st.integers(2),
    previous_tool=st.text(min_size=1),
)
def test_round_trip(chain_id: str, level: int, previous_tool: str) -> None:
    first = Provenance(chain_id=chain_id, level=1)
    later = Provenance(chain_id=chain_id, level=level, previous_tool=previous_tool)

    assert first.to_wire() == {IDENTIFIER: {"chainId": chain_id, "level": 1}}
    assert read_provenance(first.to_wire()) == first
    assert read_provenance(later.to_wire()) == later


@PROPERTY
@given(meta=JSON, wire=JSON, members=st.dictionaries(st.sampled_from([*LATER]), JSON))
def test_any_json_is_read_without_an_exception(meta: Any, wire: Any, members: Any) -> None:
    for value in (meta, {IDENTIFIER: wire}, {IDENTIFIER: members}):
        read_provenance(value)
