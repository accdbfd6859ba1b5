"""What RFC 8785 cannot write, and I-JSON does not allow.

Which values are equal: the pairs of the suite, in `tests/conformance/test_values.py`.
"""

import json
from typing import Any

import pytest

from tool_chaining.values import canonical, is_i_json

pytestmark = pytest.mark.quick


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
