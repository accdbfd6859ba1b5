"""How a person's answers to a form are read."""

from typing import Any

import pytest

from banking_server.host.questions import choices, parse

TITLED = {
    "type": "string",
    "oneOf": [{"const": "now", "title": "At once"}, {"const": "later", "title": "Later"}],
}
MANY = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}}


@pytest.mark.parametrize(
    ("schema", "offered"),
    [
        (TITLED, {"now": "At once", "later": "Later"}),
        ({"type": "string", "enum": ["a", "b"]}, {"a": "a", "b": "b"}),
        ({"type": "string", "enum": ["a"], "enumNames": ["The A"]}, {"a": "The A"}),
        (MANY, {"a": "A", "b": "b"}),
        ({"type": "array", "items": {"type": "string", "enum": ["x"]}}, {"x": "x"}),
        ({"type": "string"}, {}),
        ({"type": "boolean"}, {}),
    ],
)
def test_choices_are_found_in_every_form_they_have(
    schema: dict[str, Any], offered: dict[str, str]
) -> None:
    assert choices(schema) == offered


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        (TITLED, "1", "now"),
        (TITLED, "later", "later"),
        (MANY, "2, 1", ["b", "a"]),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "integer"}, "-3", -3),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "string"}, "just text", "just text"),
    ],
)
def test_answers_are_read(schema: dict[str, Any], line: str, value: Any) -> None:
    assert parse(line, schema, choices(schema)) == value


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (TITLED, "0"),
        (TITLED, "3"),
        (TITLED, "sooner"),
        (TITLED, "\u0662x"),
        (MANY, "1,,2"),
        ({"type": "boolean"}, "perhaps"),
        ({"type": "integer"}, "2.5"),
        ({"type": "number"}, "two"),
    ],
)
def test_answers_that_do_not_fit_are_asked_for_again(schema: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=r"^Please answer"):
        parse(line, schema, choices(schema))
