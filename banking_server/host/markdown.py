"""What a model says, as Markdown on a terminal, else as it is.

On a terminal each line is indented, so that it does not look like a line of this program. Links and
images are not made: tags are shown as text, and the address of a link is shown beside its words.
"""

from typing import Any, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from banking_server.host.printing import say, write
from tool_chaining.text import printable

INDENT: Final = 3

MAX_RENDERED: Final = 20_000
"""Characters that are rendered; what is longer is shown as it is."""


def say_plain(out: Console, text: str) -> None:
    """Print a text as it is, to the end of a line."""
    write(out, text if text.endswith("\n") else f"{text}\n")


def say_markdown(out: Console, text: str) -> None:
    """Print a text as Markdown; nothing if it is empty."""
    if not text.strip():
        return
    # A text of a server may be directly above.
    out.print()
    if len(text) > MAX_RENDERED:
        say(out, text, indent=INDENT)
        return
    with out.capture() as rendered:
        out.print(Padding(_Markdown(printable(text)), (0, 0, 0, INDENT)))
    for line in Text.from_ansi(rendered.get().removesuffix("\n")).split("\n"):
        line.rstrip()  # Rich fills each line up to the width of the terminal.
        out.print(line, soft_wrap=True)


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
