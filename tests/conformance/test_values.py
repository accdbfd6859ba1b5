"""When the suite takes two JSON values to be the same, and where a pointer leads."""

import json
from typing import Any

import pytest

from tool_chaining.values import canonical
from tool_chaining_conformance.specification import SPECS
from tool_chaining_conformance.values import at_pointer, quote, same

pytestmark = pytest.mark.quick

UNWRITABLE = [
    (float("nan"), "NaN"),
    (1e400, 10**300),
    (10**400, 10**400 + 1),
    ("\ud834", "\udd1e"),
    ({"\ud834": 1}, {"\udd1e": 1}),
]
"""What RFC 8785 cannot write. A server can send it, so the suite has to tell it apart."""


@pytest.mark.parametrize(("one", "other"), UNWRITABLE, ids=ascii)
def test_what_cannot_be_written_is_told_apart(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same({"x": [one]}, {"x": [other]})
    assert same(one, one)


PAIRS = json.loads((SPECS / "conformance" / "directives.json").read_text("utf-8"))


@pytest.mark.parametrize("pair", PAIRS["pairs"], ids=lambda pair: pair["description"])
def test_a_pair_of_arguments(pair: dict[str, Any]) -> None:
    assert same(pair["one"], pair["other"]) is pair["same"]
    assert (canonical(pair["one"]) == canonical(pair["other"])) is pair["same"]


DOCUMENT = {"a": [10, {"b": None}, "x"], "": 1, "~": 2, "/": 3, "0": "member", "01": "one"}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/a/0", 10),
        ("/", 1),
        ("/~0", 2),
        ("/~1", 3),
        ("/0", "member"),
        ("/a/3", None),
        ("/a/-", None),
        ("/a/-1", None),
        ("/a/\u00b2", None),
        ("/a/1/b", None),
        ("/a/2/0", None),
    ],
)
def test_a_pointer(pointer: str, value: Any) -> None:
    assert at_pointer(pointer, DOCUMENT) == value


def test_a_long_value_is_cut_where_it_is_shown() -> None:
    assert quote({"a": "\u00e9"}) == '{"a": "\u00e9"}'
    assert quote("x" * 500) == "\u2026 (502 characters)"
    assert quote(["y", "x" * 500, 7]) == '["y", \u2026 (512 characters)'
    assert quote([12345] * 100) == "[" + "12345, " * 42 + "12345\u2026 (700 characters)"
    assert quote({'a\\"': "\\" * 200}).startswith('{"a\\\\\\"": \u2026')


@pytest.mark.parametrize("before", range(270, 301, 2))
def test_no_value_is_cut_in_the_middle(before: int) -> None:
    """Else the beginning of a secret would stand in a report."""
    secret = 'hunter2 says: "open", [now]'
    for value in (secret, ["a", {secret: 1}], 1234567):
        left = quote(["." * before, value, "x" * 300])
        whole = secret in left.replace("\\", "") or "1234567" in left
        assert whole or not any(part in left for part in ("hunt", "123"))
