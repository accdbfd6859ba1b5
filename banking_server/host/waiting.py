"""What is waited for, on one line at the bottom of the terminal: nobody wonders if it still works.

    waiting = Waiting(sys.stderr)
    waiting.on("Waiting for pack")
    with waiting.hidden():
        print("something came")
    waiting.over()

The line is on standard error and on a terminal only, appears after a moment, and leaves nothing.
Whoever prints or asks hides it meanwhile: `printing.console` and `TerminalQuestions` are given
`hidden`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, Timer
from typing import Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from banking_server.host.plain import LINE
from banking_server.text import one_line

DELAY: Final = 0.3
"""Seconds before the line appears: what is quick is not announced."""

_A_SECOND: Final = 8
"""How often the line is drawn anew."""


class Waiting:
    """The line, and what it says; its methods can be called from any thread."""

    def __init__(self, stream: TextIO) -> None:
        self.seen = stream.isatty()
        """Whether there is a terminal to show it."""
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._spinner = Spinner("dots")
        self._lock = RLock()
        self._live: Live | None = None
        self._timer: Timer | None = None
        self._hidden = 0
        self._what = ""
        self._detail = ""

    def on(self, what: str) -> None:
        """Say what is waited for, until `over`, or until it is something else."""
        with self._lock:
            self._what, self._detail = one_line(what, LINE), ""
            self._show_soon()

    def says(self, detail: str) -> None:
        """Say more of what is waited for."""
        self._detail = one_line(detail, LINE)

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Say how far a server is with a call; a `progress_callback` of the client."""
        done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        if message:
            # The number first: what is too long for the line is cut off at its end.
            done = message if total is None else f"{done}, {message}"
        self.says(done)

    def over(self) -> None:
        """Say no more: nothing is waited for."""
        with self._lock:
            self._hide()
            self._what = ""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Keep the line away while something else is shown, or a person is asked."""
        with self._lock:
            self._hidden += 1
            self._hide()
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1
                self._show_soon()

    def __rich__(self) -> Text:
        """Return the line as it is now."""
        words = f"{self._what}: {self._detail}" if self._detail else self._what
        frame = self._spinner.render(self._console.get_time())
        line = Text.assemble(frame if isinstance(frame, Text) else "", " ", (words, "dim"))
        line.no_wrap, line.overflow = True, "ellipsis"
        return line

    def _show_soon(self) -> None:
        if self.seen and self._what and not (self._hidden or self._live or self._timer):
            self._timer = Timer(DELAY, self._show)
            self._timer.daemon = True
            self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if self._what and not (self._hidden or self._live):
                # What a server writes to standard error meanwhile is shown above the line.
                self._live = Live(
                    self,
                    console=self._console,
                    refresh_per_second=_A_SECOND,
                    transient=True,
                    redirect_stdout=False,
                )
                self._live.start(refresh=True)

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None
