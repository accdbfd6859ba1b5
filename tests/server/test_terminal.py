"""What a person at a terminal sees, and how their answers are read."""

import io
from typing import Any

import pytest
from mcp.types import (
    Annotations,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from banking_server.host.printing import choices, console, parse, printable, say, shown_to_user


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (
            "two\nlines\tand a tab, \u00e9\u2026 \U0001f600",
            "two\nlines\tand a tab, \u00e9\u2026 \U0001f600",
        ),
        ("\x1b[2J\x1b]0;title\x07", "\ufffd[2J\ufffd]0;title\ufffd"),
        ("\r\x08\x00\x7f\x9b31m", "\ufffd\ufffd\ufffd\ufffd\ufffd31m"),
        ("abc\u202edcba", "abc\ufffddcba"),
        ("\ud800", "\ufffd"),
    ],
)
def test_nothing_that_a_server_sends_steers_the_terminal(sent: str, shown: str) -> None:
    assert printable(sent) == shown
    out = io.StringIO()
    say(console(out), sent)
    assert out.getvalue() == shown.expandtabs(8) + "\n"


def test_markup_is_shown_as_it_is() -> None:
    out = io.StringIO()
    say(console(out), "[red]not red[/red] [link=x]y[/link] :smile:", indent=2)
    assert out.getvalue() == "  [red]not red[/red] [link=x]y[/link] :smile:\n"


def test_away_from_a_terminal_lines_stay_whole() -> None:
    out = io.StringIO()
    say(console(out), "word " * 100)
    assert out.getvalue().count("\n") == 1


def text(words: str, *audience: Any) -> TextContent:
    annotations = Annotations(audience=list(audience)) if audience else None
    return TextContent(type="text", text=words, annotations=annotations)


def test_what_is_for_the_model_alone_is_not_shown() -> None:
    result = CallToolResult(
        content=[
            text("everybody"),
            text("user", "user"),
            text("assistant", "assistant"),
            text("both", "user", "assistant"),
        ],
        structured_content={"hidden": True},
    )
    assert shown_to_user(result) == ["everybody", "user", "both"]
    only_the_model = CallToolResult(content=[text("x", "assistant")], structured_content={"a": 1})
    assert shown_to_user(only_the_model) == []


def test_content_that_is_no_text_is_named() -> None:
    embedded = TextResourceContents(uri="file:///a", text="embedded")
    result = CallToolResult(
        content=[
            ImageContent(type="image", data="", mime_type="image/png"),
            ResourceLink(type="resource_link", name="report", uri="file:///report"),
            EmbeddedResource(type="resource", resource=embedded),
        ]
    )
    assert shown_to_user(result) == ["[image, image/png]", "[report: file:///report]", "embedded"]


def test_structured_content_stands_in_where_there_is_no_other() -> None:
    assert shown_to_user(CallToolResult(content=[], structured_content={"a": 1})) == [
        '{\n  "a": 1\n}'
    ]


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
