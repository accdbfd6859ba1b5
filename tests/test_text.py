"""Somebody else's text is shown shorter, and with everything in it to be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_chaining.text import cut, one_line, printable, quoted

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("two\nlines\tand a tab, \u00e9\u2026 \U0001f600", None),
        ("\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\r\x08\x00\x7f\x9b31m", r"\r\x08\x00\x7f\x9b31m"),
        ("abc\u202edcba\u061c\xad", r"abc\u202edcba\u061c\xad"),
        ("\ud800", r"\ud800"),
        ("a\u200bb\U000e0041c\u2028d\ufeffe", r"a\u200bb\U000e0041c\u2028d\ufeffe"),
        ("\u2800\u3164\u115f", r"\u2800\u3164\u115f"),
    ],
)
def test_control_and_invisible_characters_are_escaped(sent: str, shown: str | None) -> None:
    assert printable(sent) == (sent if shown is None else shown)


@given(st.text())
def test_one_line_contains_no_line_break(text: str) -> None:
    for shown in (one_line(text), printable(text, lines=False), quoted(text)):
        assert len(shown.splitlines()) <= 1
        shown.encode()
    assert len(one_line(text, 5)) <= 5


@pytest.mark.parametrize(
    ("sent", "length", "shown"),
    [
        ("one\ntwo\tthree ", None, "one two three"),
        ("one\n    two", None, "one two"),
        ("two  blanks stay", None, "two  blanks stay"),
        ("\x1b[2J" * 3, 10, "\\x1b[2J\\x\u2026"),
    ],
)
def test_line_breaks_become_spaces(sent: str, length: int | None, shown: str) -> None:
    assert one_line(sent, length) == shown


def test_quotes_and_line_breaks_in_a_quotation_are_escaped() -> None:
    assert quoted('order" was called\ncall\u202e') == r'"order\" was called\ncall\u202e"'


def test_a_truncated_text_states_its_length() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("x" * 1_000, 3) == "xxx\u2026 (1,000 characters)"
