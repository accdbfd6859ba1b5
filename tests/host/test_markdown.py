"""What a model says, as it is shown on a terminal and to a program."""

import io
import re

import pytest

from banking_server.host.markdown import MAX_RENDERED, say_markdown, say_plain
from banking_server.host.printing import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str, *, width: int = 44) -> str:
    """Return what a terminal shows of an answer, without styles."""
    out = Terminal()
    screen = console(out)
    screen.width = width
    say_markdown(screen, text)
    return re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).strip("\n")


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("**Two** of *many* `words`.", "   Two of many words.\n"),
        (
            "1. a\n\n   still a\n2. b\n   - c\n\nEnd.",
            "    1 a\n      still a\n    2 b\n       • c\n\n   End.\n",
        ),
        ("```py\na = 1\n\n  b = [x]\n```\nSo.", "    a = 1\n\n      b = [x]\n\n\n   So.\n"),
        ("| a | b |\n| - | -: |\n| one | 2 |", "    a    b\n    ──────\n    one  2\n"),
        # What is not Markdown, or is not to be.
        ("<b>List<int></b> [red]x[/red] :smile:", "   <b>List<int></b> [red]x[/red] :smile:\n"),
        ("[bank](https://evil.example)", "   bank (https://evil.example)\n"),
        ("[hidden]: http://a.example", "   [hidden]: http://a.example\n"),
        ("a &#8238;b &#x1b;[2J &amp; c\x1b[2J", "   a &#8238;b &#x1b;[2J &amp; c\\x1b[2J\n"),
        (" \n\n", ""),
    ],
)
def test_markdown_is_rendered_and_nothing_in_it_is_hidden(said: str, seen: str) -> None:
    assert shown(said) == seen.removesuffix("\n")


def test_what_is_long_is_shown_as_it_is() -> None:
    seen = shown("**a**\n" * (MAX_RENDERED // 2), width=400)
    assert seen.split() == ["**a**"] * (MAX_RENDERED // 2)


def test_a_program_gets_the_words_as_they_are() -> None:
    out = io.StringIO()
    say_plain(console(out), "**Two** words\x1b[2J\n\n- one")
    assert out.getvalue() == "**Two** words\\x1b[2J\n\n- one\n"
