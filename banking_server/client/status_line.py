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
        self.is_shown = stream.isatty()
        """Whether the stream is a terminal, so that the line shows."""
        self._console = Console(file=stream, markup=False, emoji=False)
        self._status = Status("", console=self._console)
        self._what = ""
        self._hidden = 0

    def show(self, what: str, detail: str = "") -> None:
        """Show what the program waits for now, and a detail."""
        self._what = one_line(what, LINE)
        words = f"{self._what}: {one_line(detail, LINE)}" if detail else self._what
        line = Text(words, "dim")
        line.truncate(self._console.width - 2, overflow="ellipsis")  # Beside the spinner.
        self._status.update(line)
        self._draw()

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the progress of a call; a `progress_callback` of the client."""
        done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        if message:
            # The number first, because a long line is cut off at its end.
            done = message if total is None else f"{done}, {message}"
        if self._what:
            self.show(self._what, done)

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
        if self.is_shown and self._what and not self._hidden:
            self._status.start()
        else:
            self._status.stop()
