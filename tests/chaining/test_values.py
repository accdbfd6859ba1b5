"""How RFC 8785 writes a value, and when two values are the same."""

import json
import struct
from typing import Any

import pytest

from banking_server.chaining.values import canonical, keeps_its_value, same

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("c340000000000000", "-9007199254740992"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555556", "333333333.3333334"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
    ],
)
def test_numbers_of_appendix_b_of_rfc_8785(bits: str, text: str) -> None:
    [double] = struct.unpack(">d", bytes.fromhex(bits))

    assert canonical(double) == text
    assert canonical(json.loads(text)) == text


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
    assert not same(value, value)


def test_members_are_sorted_by_utf_16_code_units() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]

    written = [*json.loads(canonical(dict.fromkeys(names)))]
    assert written == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("value", "keeps"),
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
    ],
)
def test_which_numbers_all_readers_read_alike(value: Any, keeps: bool) -> None:
    assert keeps_its_value(value) is keeps
