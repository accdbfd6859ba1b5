"""Showing what a model says: as Markdown on a terminal, else as it is.

On a terminal it is shown block by block, as each is complete, and every line is indented, as no
line of this program's own is. Nothing in it becomes a link or an image: tags stand there as text,
and an address stands beside the words that it is behind.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from banking_server.host.printing import say, write
from banking_server.text import one_line, printable

INDENT: Final = 3

MAX_RENDERED: Final = 5_000
"""Characters that are rendered at a time; a longer paragraph is shown as it is."""

_BESIDE: Final = 20
"""Columns that what is being said leaves to what else the line says."""

_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})(.*)")


class PlainSpeech:
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


class MarkdownSpeech:
    """Renders what a model says, a block of Markdown at a time.

    `coming` is told the end of what is not complete yet, for a line that is not kept.
    """

    def __init__(self, out: Console, coming: Callable[[str], None]) -> None:
        self._out = out
        self._coming = coming
        self._blocks = _Blocks()
        self._line = ""

    def say(self, piece: str) -> None:
        """Take a piece, and show what is complete."""
        *lines, self._line = (self._line + piece).split("\n")
        for line in lines:
            self._show(self._blocks.add(line))
        self._show(self._blocks.before(self._line))
        width = max(self._out.width - _BESIDE, 1)
        coming = f"{self._blocks.newest[-width:]} {self._line[-width:]}"
        self._coming(one_line(coming)[-width:])

    def end(self) -> None:
        """Show the rest."""
        self._show(self._blocks.add(self._line))
        self._show(self._blocks.rest())
        self._line = ""
        self._coming("")

    def _show(self, block: str) -> None:
        if not block.strip():
            return
        # Also before the first one: what a server says may stand above it.
        self._out.print()
        if len(block) > MAX_RENDERED:
            say(self._out, block, indent=INDENT)
        else:
            self._out.print(_Shown(_Markdown(printable(block))), end="")


class _Blocks:
    """Finds the blocks of Markdown that can be rendered by themselves, as their lines come.

    One ends at an empty line with a line after it that is not indented: not in a list's item, that
    is, and not between fences.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._fence = ""
        self.newest = ""
        """The last line, of a block that is not complete."""

    def before(self, line: str) -> str:
        """Return the block that the beginning of a line shows to be complete, or nothing."""
        begins = bool(line.strip()) and line[0] not in " \t"
        if begins and not self._fence and self._lines and not self._lines[-1].strip():
            return self.rest()
        return ""

    def add(self, line: str) -> str:
        """Take a line, and return the block before it if that is complete now."""
        block = self.before(line)
        self._lines.append(line)
        self.newest = line
        fence = _FENCE.fullmatch(line)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and not fence[2].strip():
            self._fence = ""
        return block

    def rest(self) -> str:
        """Return what is left, and forget it."""
        block = "\n".join(self._lines)
        self._lines, self._fence, self.newest = [], "", ""
        return block


class _Heading(Heading):
    """A heading, where everything else begins too."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the heading."""
        yield self.text


class _Code(CodeBlock):
    """A block of code, in one style: what colours it could take long over odd text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the code, line by line."""
        yield Text(str(self.text).rstrip(), style="cyan")


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
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
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
