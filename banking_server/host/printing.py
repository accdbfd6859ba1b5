"""Printing at a terminal: plain texts, which nothing that a server sends can steer.

What a server sends is never passed to the terminal as it is, but as `plain` makes it.
"""

import io
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from banking_server.host.plain import printable

_PIECE: Final = 20_000
"""Characters that are wrapped at a time: rich takes a hundred bytes for each."""


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


def say(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print a text from any source, piece by piece. Lines that wrap are indented too."""
    shown = printable(text)
    if out.soft_wrap:
        _write(out, (f"{' ' * indent}{line}".rstrip() for line in _lines(shown)))
        return
    for piece in _pieces(shown):
        out.print(Padding(Text(piece, style=style), (0, 0, 0, indent), expand=False))


def _write(out: Console, lines: Iterable[str]) -> None:
    if out.quiet:
        return
    try:
        out.file.writelines(f"{line.expandtabs()}\n" for line in lines)
        out.file.flush()
    except BrokenPipeError:
        out.on_broken_pipe()


def _lines(text: str) -> Iterator[str]:
    yield from io.StringIO(f"{text}\n", newline="\n")


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that can be wrapped one by one, each a line or more."""
    at = 0
    while len(text) - at > _PIECE:
        end = text.rfind("\n", at, at + _PIECE)
        yield text[at : end if end >= 0 else at + _PIECE]
        at = end + 1 if end >= 0 else at + _PIECE
    yield text[at:]


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
