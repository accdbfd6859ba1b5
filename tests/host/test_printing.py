"""What reaches the terminal, whatever a server sends."""

import io
import os

import pytest

from banking_server.host.plain import one_line, printable, quoted
from banking_server.host.printing import console, say


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
        ("a\u200bb\U000e0041c\u2028d\ufeffe", "a\ufffdb\ufffdc\ufffdd\ufffde"),
        (
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
    ],
)
def test_nothing_that_a_server_sends_steers_the_terminal(sent: str, shown: str) -> None:
    assert printable(sent) == shown
    out = io.StringIO()
    say(console(out), sent)
    assert out.getvalue() == shown.expandtabs(8) + "\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("order", '"order"'),
        ('order" was called\ncall', '"order\\" was called call"'),
        ("a        b", '"a b"'),
        ("a\u00a0\u2800\u3164\u115fb", '"a\ufffd\ufffd\ufffd\ufffdb"'),
        ("n" * 200_000, f'"{"n" * 127}\u2026"'),
    ],
)
def test_a_name_cannot_leave_its_quotes(name: str, shown: str) -> None:
    assert quoted(name) == shown


def test_markup_is_shown_as_it_is() -> None:
    out = io.StringIO()
    say(console(out), "[red]not red[/red] [link=x]y[/link] :smile:", indent=2)
    assert out.getvalue() == "  [red]not red[/red] [link=x]y[/link] :smile:\n"


def test_away_from_a_terminal_lines_stay_whole() -> None:
    out = io.StringIO()
    say(console(out), "word " * 100)
    assert out.getvalue().count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_text_is_wrapped_piece_by_piece_and_whole() -> None:
    lines = "\n".join(f"line {number}" for number in range(10_000))
    out = Terminal()
    say(console(out), f"{lines}\n{'x' * 50_000}")
    shown = [line.rstrip() for line in out.getvalue().splitlines()]
    assert "\n".join(shown[:10_000]) == lines
    assert "".join(shown[10_000:]) == "x" * 50_000


def test_a_reader_that_is_gone_is_told_no_more() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        out = console(stream)
        say(out, "never read")
        say(out, "nor this")
        assert out.quiet


@pytest.mark.parametrize(
    ("sent", "length", "shown"),
    [
        ("one\ntwo\tthree ", None, "one two three"),
        ("two  blanks stay", None, "two  blanks stay"),
        ("\x1b[2J" * 3, 6, "\ufffd[2J\ufffd\u2026"),
    ],
)
def test_on_one_line_no_line_break_begins_another(
    sent: str, length: int | None, shown: str
) -> None:
    assert one_line(sent, length) == shown
