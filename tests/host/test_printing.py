"""What reaches the terminal, whatever a server sends, and what of a result does."""

import io
import re
from typing import Any

import pytest
from mcp.types import Annotations, CallToolResult, TextContent

from banking_server.host.narrator import shown_to_user
from banking_server.host.plain import quoted_name
from banking_server.host.printing import console, say, say_in_parts

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('order" was called\ncall', '"order\\" was called call"'),
        ("a        b", '"a b"'),
        ("a\u00a0\u2800\u3164\u115fb", r'"a \u2800\u3164\u115fb"'),
        ("n" * 200_000, f'"{"n" * 127}\u2026"'),
    ],
)
def test_a_name_cannot_leave_its_quotes(name: str, shown: str) -> None:
    assert quoted_name(name) == shown


@pytest.mark.parametrize(
    ("terminal", "variables", "may"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_are_where_they_may_be(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variables: dict[str, str], may: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    out = console(stream)
    say(out, "one\n\ntwo", indent=2, style="bold")
    say_in_parts(out, ("name", "cyan"), (": words", ""), indent=2)
    shown = stream.getvalue()
    assert ("\x1b[36m" in shown) is may
    assert terminal or may or "\x1b" not in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [line.rstrip() for line in plain.splitlines()] == ["  one", "", "  two", "  name: words"]


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
