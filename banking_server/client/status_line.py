"""Shows what the program waits for, on one line at the bottom of the terminal.

    waiting = StatusLine(sys.stderr)
    waiting.show("Waiting for pack")
    with waiting.hidden():
        print("something came")
    waiting.remove()

The line goes to standard error, only on a terminal, and disappears at the end. Everything that
prints or asks hides it: `printing.console` and `TerminalQuestions` get `hidden`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from banking_server.client.plain import LINE
from tool_chaining.text import one_line


class StatusLine:
    """The status line."""

    def __init__(self, stream: TextIO) -> None:
        self._is_shown = stream.isatty()
        self._console = Console(file=stream, markup=False, emoji=False)
        self._status = Status("", console=self._console)
        self._what = ""
        self._hidden = 0

    def show(self, what: str) -> None:
        """Show what the program waits for now."""
        self._what = one_line(what, LINE)
        line = Text(self._what, "dim")
        line.truncate(self._console.width - 2, overflow="ellipsis")  # Beside the spinner.
        self._status.update(line)
        self._draw()

    def remove(self) -> None:
        """Remove the line: the program no longer waits."""
        self._what = ""
        self._draw()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while something else is printed, or a person is asked."""
        self._hidden += 1
        self._draw()
        try:
            yield
        finally:
            self._hidden -= 1
            self._draw()

    def _draw(self) -> None:
        if self._is_shown and self._what and not self._hidden:
            self._status.start()
        else:
            self._status.stop()
