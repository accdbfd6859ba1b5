"""Lines on standard error, for an operator who may not read them.

A write to a full pipe blocks, and would stop the protocol on the event loop. So a thread writes.
"""

import atexit
import os
import time
from contextlib import suppress
from functools import cache
from queue import Full, Queue
from threading import Thread
from typing import Final

LINES: Final = 1_000
"""The most lines that wait to be written. Further ones are dropped, and counted."""

_LAST: Final = 1.0
"""Seconds in which the lines are written when the program ends."""


class _StandardError:
    """The lines that wait to be written."""

    def __init__(self) -> None:
        self._lines: Queue[str] = Queue(LINES)
        self._dropped = 0
        Thread(target=self._write, daemon=True).start()
        atexit.register(self.finish)

    def add(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except Full:
            self._dropped += 1

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            dropped, self._dropped = self._dropped, 0
            if dropped:
                line += f"[{dropped} lines were dropped, because nobody read them]\n"
            with suppress(OSError):
                os.write(2, line.encode(errors="replace"))
            self._lines.task_done()

    def finish(self) -> None:
        until = time.monotonic() + _LAST
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.01)


_standard_error = cache(_StandardError)


def write_line(line: str) -> None:
    """Write a line to standard error soon, without waiting. It ends in a line break if need be."""
    _standard_error().add(line if line.endswith("\n") else f"{line}\n")


def finish_writing() -> None:
    """Wait until the lines are written, for a second at most."""
    _standard_error().finish()
