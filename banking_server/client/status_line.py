"""Shows what the program waits for, on one line at the bottom of the terminal.

The line goes to standard error, only on a terminal. Whoever prints or asks removes it first.
"""

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

    def show(self, what: str) -> None:
        """Show what the program waits for now."""
        if self._is_shown:
            line = Text(one_line(what, LINE), "dim")
            line.truncate(self._console.width - 2, overflow="ellipsis")  # Beside the spinner.
            self._status.update(line)
            self._status.start()

    def remove(self) -> None:
        """Remove the line: something else is shown, or the program no longer waits."""
        self._status.stop()
