"""Printing at a terminal. Texts of a server are escaped first, so that they cannot control it."""

import json
from typing import Any, Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tool_chaining.text import printable

_WRAPPED: Final = 20_000
"""The longest text to wrap, in characters: rich needs much memory for longer ones."""


def console(stream: TextIO) -> Console:
    """Return a console on `stream`. Only on a terminal, lines are wrapped and have colours.

    NO_COLOR and TERM=dumb turn the colours off.
    """
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not stream.isatty(),
    )


def say(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print a text from any source. Lines that wrap are indented too."""
    say_in_parts(out, (text, style), indent=indent)


def say_in_parts(out: Console, *parts: tuple[str, str], indent: int = 0, hang: int = 0) -> None:
    """Print a text of parts from any source, each with its style.

    Where a line wraps, the next ones are indented by `hang` more.
    """
    shown = [(printable(text), style) for text, style in parts]
    plain = "".join(text for text, _ in shown)
    if out.soft_wrap or len(plain) > _WRAPPED:
        margin = " " * indent
        out.file.writelines(f"{margin}{line}\n" if line else "\n" for line in plain.split("\n"))
        out.file.flush()
        return
    text = Text.assemble(*shown)
    if hang:
        text = Text(f"\n{' ' * hang}").join(text.wrap(out, max(out.width - indent - hang, 1)))
    # Padding would make an empty text more than a line.
    out.print(Padding(text, (0, 0, 0, indent), expand=False) if plain.strip("\n") else text)


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
