"""Showing what a model says: as Markdown on a terminal, else as it is.

On a terminal it is shown once all of it is there, and every line is indented, as no line of this
program's own is. Nothing in it becomes a link or an image: tags stand there as text,
and an address stands beside the words that it is behind.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.segment import Segment
from rich.table import Table

from banking_server.host.printing import say, write
from banking_server.text import printable

INDENT: Final = 3

MAX_RENDERED: Final = 20_000
"""Characters that are rendered; what is longer is shown as it is."""


class PlainStream:
    """Passes on what a model says, piece by piece."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._mid_line = False

    def say(self, piece: str) -> None:
        """Show a piece."""
        write(self._out, piece)
        self._mid_line = not piece.endswith("\n")

    def end(self) -> None:
        """End the line, if anything stands on it."""
        if self._mid_line:
            write(self._out, "\n")
            self._mid_line = False


class MarkdownStream:
    """Renders what a model says, as Markdown, once all of it is there."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._said = ""

    def say(self, piece: str) -> None:
        """Take a piece."""
        self._said += piece

    def end(self) -> None:
        """Show all of it."""
        said, self._said = self._said, ""
        if not said.strip():
            return
        # Also before the first one: what a server says may stand above it.
        self._out.print()
        if len(said) > MAX_RENDERED:
            say(self._out, said, indent=INDENT)
        else:
            self._out.print(_Shown(_Markdown(printable(said))), end="")


class _Table(TableElement):
    """A table of which nothing is left out: a long id goes on in the next line of its cell."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the table."""
        made = super().__rich_console__(console, options)
        for table in (part for part in made if isinstance(part, Table)):
            for column in table.columns:
                column.overflow = "fold"
            yield table


class _Markdown(Markdown):
    """Markdown in which tags, addresses and line breaks are seen."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False})
        parser.enable(["table", "strikethrough"]).disable(["image", "autolink", "reference"])
        self.parsed = parser.parse(text)
        for token in self.parsed:
            for part in token.children or ():
                # A model that begins a new line means one.
                part.type = "hardbreak" if part.type == "softbreak" else part.type


class _Shown:
    """Markdown rendered, with each line indented, and no blanks at its end.

    What it is made of was `printable` before, but `&#8238;` is a character only now.
    """

    def __init__(self, markdown: Markdown) -> None:
        self._markdown = markdown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Render, and let nothing through that steers."""
        inner = options.update(width=max(options.max_width - INDENT, 1))
        lines = [
            list(_without_end(line))
            for line in console.render_lines(self._markdown, inner, pad=False)
        ]
        with_text = [number for number, line in enumerate(lines) if line]
        for line in lines[with_text[0] : with_text[-1] + 1] if with_text else ():
            yield Segment(" " * INDENT if line else "")
            yield from line
            yield Segment.line()


def _without_end(line: list[Segment]) -> Iterator[Segment]:
    """Return what is seen of a line: without the blanks at its end."""
    length = max((n for n, part in enumerate(line, 1) if part.text.strip()), default=0)
    for number, part in enumerate(line[:length], 1):
        text = printable(part.text)
        yield Segment(text.rstrip() if number == length else text, part.style)
