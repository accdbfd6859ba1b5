"""Printing at a terminal: plain texts, which nothing that a server sends can steer.

What a server sends is never passed to the terminal as it is: control characters are replaced.
"""

import json
import os
import unicodedata
from typing import Any, Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

_BIDI_CONTROLS: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


class _Console(Console):
    """A console that falls silent when its reader is gone; what is under way goes on."""

    def on_broken_pipe(self) -> None:
        """Let the rest of the output go nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(stream: TextIO) -> Console:
    """Return a console on `stream`: styled and wrapped on a terminal, else plain whole lines."""
    terminal = stream.isatty()
    return _Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=not terminal)


def printable(text: str) -> str:
    """Return a text without any character that could steer the terminal."""
    return "".join(
        character
        if character in "\n\t"
        or (unicodedata.category(character) not in ("Cc", "Cs") and character not in _BIDI_CONTROLS)
        else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def say(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print a text from any source. Lines that wrap are indented too."""
    shown = printable(text)
    if out.soft_wrap:
        margin = " " * indent
        out.print("\n".join(f"{margin}{line}".rstrip() for line in shown.split("\n")))
    else:
        out.print(Padding(Text(shown, style=style), (0, 0, 0, indent), expand=False))


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
