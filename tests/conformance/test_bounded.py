"""What the suite's own validator says of arguments, and where it says that it cannot tell."""

from typing import Any

import pytest

from tool_chaining_conformance.server import bounded


def member(rule: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": rule}}


@pytest.mark.parametrize(
    ("schema", "arguments", "fault"),
    [
        (member({"type": "string"}), {"a": "b"}, None),
        (member({"type": "string"}), {"a": 1}, '$.a: this is not of type "string"'),
        (member({"items": {"minimum": 2}}), {"a": [3, 1]}, "$.a[1]: this is less than"),
        (member({"allOf": [False]}), {"a": 1}, "$.a: False schema"),
        (False, {}, "$: False schema does not allow this"),
        ({"type": 7}, {}, "no client can validate the arguments"),
        ({"$ref": "#/$defs/none"}, {}, "no client can validate the arguments"),
    ],
)
def test_a_fault_is_told_by_its_place_and_rule(
    schema: Any, arguments: dict[str, Any], fault: str | None
) -> None:
    said = bounded.first_fault(schema, arguments)
    assert said is None if fault is None else str(said).startswith(fault)


@pytest.mark.parametrize(
    ("schema", "arguments", "reason"),
    [
        (member({"pattern": "(?<a>b)\\k<a>[^]"}), {"a": "bbb"}, "cannot compile"),
        ({"$ref": "https://example.com/schema"}, {}, "the input schema cannot be used"),
        (member({"pattern": "^(?:a|(?=a)a)*$"}), {"a": "a" * 60 + "b"}, "takes too long for a pat"),
    ],
)
def test_what_it_cannot_tell_blames_nobody(
    schema: Any, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(bounded.CannotTell, match=reason):
        bounded.first_fault(schema, arguments)
