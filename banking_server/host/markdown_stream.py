"""Showing what a model says: as Markdown on a terminal, else as it is.

On a terminal it is shown when it is complete, and each line is indented, so that it does not look
like a line of this program. Links and images are not made: tags are shown as text, and the address
of a link is shown beside its words.
"""

from typing import Any, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

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
    """Renders what a model says as Markdown, when it is complete."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._said = ""

    def say(self, piece: str) -> None:
        """Add a piece."""
        self._said += piece

    def end(self) -> None:
        """Show the whole text."""
        said, self._said = self._said, ""
        if not said.strip():
            return
        # A text of a server may be directly above.
        self._out.print()
        if len(said) > MAX_RENDERED:
            say(self._out, said, indent=INDENT)
        else:
            with self._out.capture() as rendered:
                self._out.print(Padding(_Markdown(printable(said)), (0, 0, 0, INDENT)))
            for line in Text.from_ansi(rendered.get().removesuffix("\n")).split("\n"):
                line.rstrip()  # Rich fills each line up to the width of the terminal.
                self._out.print(line, soft_wrap=True)


class _Table(TableElement):
    """A table that wraps long words, such as ids, instead of cutting them."""

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
        parser.enable(["table", "strikethrough"])
        # An entity could be a character that steers the terminal.
        parser.disable(["image", "autolink", "reference", "entity"])
        self.parsed = parser.parse(text)
        for token in self.parsed:
            for part in token.children or ():
                # A model that begins a new line means one.
                part.type = "hardbreak" if part.type == "softbreak" else part.type
