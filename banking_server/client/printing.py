"""Printing at a terminal. Texts of a server are escaped first, so that they cannot control it."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tool_chaining.text import printable

Hidden = Callable[[], AbstractContextManager[object]]
"""Hides the status line while something is printed: `StatusLine.hidden`."""

_WRAPPED: Final = 20_000
"""The longest text to wrap, in characters: rich needs much memory for longer ones."""


class _Console(Console):
    """A console that hides the status line while it prints."""

    def __init__(self, hidden: Hidden, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = hidden

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, with the status line hidden."""
        with self.hidden():
            super().print(*objects, **options)


def console(stream: TextIO, hidden: Hidden = nullcontext) -> Console:
    """Return a console on `stream`. Lines are wrapped only on a terminal.

    NO_COLOR, FORCE_COLOR and TERM=dumb decide about colours.
    """
    return _Console(
        hidden,
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
    styled = out.color_system and any(style for _, style in shown)
    if len(plain) > _WRAPPED or (out.soft_wrap and not styled):
        lines = (f"{' ' * indent}{line}".rstrip() for line in _lines(plain))
        _write(out, (f"{line.expandtabs()}\n" for line in lines))
        return
    text = Text.assemble(*shown)
    if hang and not out.soft_wrap:
        text = Text(f"\n{' ' * hang}").join(text.wrap(out, max(out.width - indent - hang, 1)))
    _print(out, text, indent)


def _print(out: Console, text: Text, indent: int) -> None:
    if out.soft_wrap:
        lines = text.split("\n", allow_blank=True)
        out.print(Text("\n").join(Text(" " * indent) + line for line in lines))
    elif not text.plain.strip("\n"):
        out.print(text)  # Without a width: padding would make it more than a line.
    else:
        out.print(Padding(text, (0, 0, 0, indent), expand=False))


def write(out: Console, text: str) -> None:
    """Write a piece of a text from any source unchanged: not wrapped, without a line break."""
    _write(out, [printable(text)])


def _write(out: Console, pieces: Iterable[str]) -> None:
    with out.hidden() if isinstance(out, _Console) else nullcontext():
        out.file.writelines(pieces)
        out.file.flush()


def _lines(text: str) -> Iterator[str]:
    yield from io.StringIO(f"{text}\n", newline="\n")


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
