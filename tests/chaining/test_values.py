"""How RFC 8785 writes a value."""

import json
from typing import Any

import pytest

from tool_chaining.values import canonical, is_i_json

pytestmark = pytest.mark.quick


def test_two_values_have_one_text_if_they_are_the_same_json() -> None:
    one = [1, 1.0, True, "1", None, -0.0, 0, 2**53, 2**53 + 1, 1e21, 5e-324, [], {}]
    texts = [canonical(value) for value in one]
    assert texts[:6] == ["1", "1", "true", '"1"', "null", "0"]
    assert texts[7] == texts[8]
    assert len({*texts}) == len(one) - 3
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    assert canonical(dict.fromkeys(names)) == canonical(dict.fromkeys(reversed(names)))
    assert canonical("\u00e9") != canonical("e\u0301")


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), -float("inf"), json.loads("1e400"), 10**400, -(10**400)),
        *("\ud800", "a\udc00b", {"\ud800": 1}, {"a": ["\ud800"]}, {1: 2}, {"a": object()}),
    ],
)
def test_what_rfc_8785_cannot_write(value: Any) -> None:
    with pytest.raises(ValueError, match=r"number|surrogate|not a JSON value"):
        canonical(value)
    with pytest.raises(ValueError, match=r"number|surrogate|not a JSON value") as refused:
        canonical([{"x": value}])
    assert "\ud800" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        (2**53, True),
        (2**53 + 1, False),
        (-(2**53) - 1, False),
        (2**60, False),  # written 1152921504606847000
        (1152921504606847000, True),
        (10**23, True),  # which no double is, and yet what is written for the nearest one
        (10**23 + 1, False),
        (0.1, True),
        (True, True),
        ("9007199254740993", True),
        ({"a": [1, {"b": 2**53 + 1}]}, False),
        ({"a": [1, {"b": 2**53 + 2}]}, True),
        ("\ud7ff\ufdcf\ufdf0\ufffd\U0001fffd", True),
        *((one, False) for one in ("a\ufdd0", ["\ufdef"], "\ufffe", {"\uffff": 1}, "\U0010ffff")),
    ],
)
def test_which_values_all_readers_read_alike(value: Any, is_read: bool) -> None:
    assert is_i_json(value) is is_read
