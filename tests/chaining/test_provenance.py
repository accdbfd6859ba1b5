"""Reading and writing what a follow-up request says about its chain."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from banking_server.chaining import IDENTIFIER, Provenance, read_provenance

from .support import PROPERTY
from .test_directive import JSON


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"chainId": "c", "level": 1}, Provenance(chain_id="c", level=1)),
        (
            {"chainId": "c", "level": 2, "previousTool": "t"},
            Provenance(chain_id="c", level=2, previous_tool="t"),
        ),
        ({"chainId": "c", "level": 1, "more": [1]}, Provenance(chain_id="c", level=1)),
        ({"chainId": "c" * 128, "level": 1.0}, Provenance(chain_id="c" * 128, level=1)),
        (
            {"chainId": "c", "level": 2**31, "previousTool": "t"},
            Provenance(chain_id="c", level=2**31, previous_tool="t"),
        ),
    ],
)
def test_valid(wire: dict[str, Any], expected: Provenance) -> None:
    assert read_provenance({"other": 1, IDENTIFIER: wire}) == expected


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        "c",
        5,
        {},
        {"chainId": "c"},
        {"level": 1},
        {"chainId": "", "level": 1},
        {"chainId": "c" * 129, "level": 1},
        {"chainId": 5, "level": 1},
        {"chainId": None, "level": 1},
        {"chainId": "\ud800", "level": 1},
        {"chainId": "c", "level": 0},
        {"chainId": "c", "level": -1},
        {"chainId": "c", "level": True},
        {"chainId": "c", "level": "1"},
        {"chainId": "c", "level": 1.5},
        {"chainId": "c", "level": None},
        {"chainId": "c", "level": 2},
        {"chainId": "c", "level": 2, "previousTool": None},
        {"chainId": "c", "level": 1, "previousTool": None},
        {"chainId": "c", "level": 1, "previousTool": "t"},
        {"chainId": "c", "level": 1e400, "previousTool": "t"},
        {"chainId": "c", "level": 2, "previousTool": ""},
        {"chainId": "c", "level": 2, "previousTool": 5},
        {"chain_id": "c", "level": 1},
    ],
)
def test_malformed_is_ignored(wire: object) -> None:
    assert read_provenance({IDENTIFIER: wire}) is None


@pytest.mark.parametrize("meta", [None, {}, {"other": {"chainId": "c", "level": 1}}, [], "x", 5])
def test_absent(meta: object) -> None:
    assert read_provenance(meta) is None


def test_the_first_call_names_no_previous_tool() -> None:
    wire = Provenance(chain_id="c", level=1).to_wire()

    assert wire == {IDENTIFIER: {"chainId": "c", "level": 1}}


@PROPERTY
@given(
    chain_id=st.text(min_size=1, max_size=128),
    level=st.integers(2),
    previous_tool=st.text(min_size=1),
)
def test_round_trip(chain_id: str, level: int, previous_tool: str) -> None:
    first = Provenance(chain_id=chain_id, level=1)
    later = Provenance(chain_id=chain_id, level=level, previous_tool=previous_tool)

    assert read_provenance(first.to_wire()) == first
    assert read_provenance(later.to_wire()) == later
    assert type(later.level) is int


@PROPERTY
@given(
    meta=JSON
    | st.builds(
        lambda value: {IDENTIFIER: value},
        JSON
        | st.fixed_dictionaries(
            {}, optional={"chainId": JSON, "level": JSON, "previousTool": JSON}
        ),
    )
)
def test_any_json_is_read_without_an_exception(meta: Any) -> None:
    read_provenance(meta)
