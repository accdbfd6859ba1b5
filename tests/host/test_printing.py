"""What reaches the terminal, whatever a server sends."""

import io

import pytest

from banking_server.host.printing import console, printable, say


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
