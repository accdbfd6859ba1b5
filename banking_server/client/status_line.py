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
from typing import Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from banking_server.client.plain import LINE
from tool_chaining.text import one_line

_A_SECOND: Final = 8
"""How often the line is redrawn, per second."""


class StatusLine:
    """The status line."""

    def __init__(self, stream: TextIO) -> None:
        self.is_shown = stream.isatty()
        """Whether the stream is a terminal, so that the line shows."""
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        self._hidden = 0
        self._what = ""
        self._detail = ""

    def show(self, what: str) -> None:
        """Show what the program waits for now."""
        self._what, self._detail = one_line(what, LINE), ""
        self._show()

    def add(self, detail: str) -> None:
        """Show a detail after it."""
        self._detail = one_line(detail, LINE)

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the progress of a call; a `progress_callback` of the client."""
        done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        if message:
            # The number first, because a long line is cut off at its end.
            done = message if total is None else f"{done}, {message}"
        self.add(done)

    def remove(self) -> None:
        """Remove the line: the program no longer waits."""
        self._what = ""
        self._hide()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while something else is printed, or a person is asked."""
        self._hidden += 1
        self._hide()
        try:
            yield
        finally:
            self._hidden -= 1
            self._show()

    def __rich__(self) -> Text:
        """Return the current line."""
        words = f"{self._what}: {self._detail}" if self._detail else self._what
        frame = self._spinner.render(self._console.get_time())
        line = Text.assemble(frame if isinstance(frame, Text) else "", " ", (words, "dim"))
        line.no_wrap, line.overflow = True, "ellipsis"
        return line

    def _show(self) -> None:
        if self.is_shown and self._what and not (self._hidden or self._live):
            # What a server writes to standard error is shown above the line.
            self._live = Live(
                self,
                console=self._console,
                refresh_per_second=_A_SECOND,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start(refresh=True)

    def _hide(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
