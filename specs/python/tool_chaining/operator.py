"""Lines on standard error, for an operator who may not read them.

A write to a full pipe blocks, and would stop the protocol on the event loop. So a thread writes.
"""

import atexit
import logging
import os
import time
from collections import Counter, deque
from contextlib import suppress
from functools import cache
from queue import Full, Queue
from threading import Thread
from typing import Final

from tool_chaining.text import one_line

LINES: Final = 1_000
"""The most lines that wait to be written. Further ones are dropped, and counted."""

_LAST: Final = 1.0
"""Seconds to write the remaining lines when the program ends."""

_waiting: Final = Queue[str](LINES)
_dropped: Final = Counter[str]()


def write_line(line: str) -> None:
    """Write a line to standard error soon, without waiting. It ends in a line break if need be."""
    _start()
    try:
        _waiting.put_nowait(line if line.endswith("\n") else f"{line}\n")
    except Full:
        _dropped["lines"] += 1


def show(line: str) -> None:
    """Print a line to standard output. Whoever closes the pipe has read enough."""
    try:
        print(one_line(line), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class Warnings(logging.Handler):
    """Writes each problem with a server as one line to standard error.

    Each kind is written once: the connections of all callers find the same problems.
    """

    def __init__(self, program: str) -> None:
        """`program` is the name at the beginning of each line."""
        super().__init__(logging.WARNING)
        self._program = program
        self._written: deque[str] = deque(maxlen=LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message of a record."""
        line = one_line(self.format(record))
        kind = getattr(record, "kind", line)
        if kind not in self._written:
            self._written.append(kind)
            write_line(f"{self._program}: {line}")


def finish_writing() -> None:
    """Wait until the lines are written, for a second at most."""
    until = time.monotonic() + _LAST
    while _waiting.unfinished_tasks and time.monotonic() < until:
        time.sleep(0.01)


@cache
def _start() -> None:
    Thread(target=_write, daemon=True).start()
    atexit.register(finish_writing)


def _write() -> None:
    while True:
        line = _waiting.get()
        if dropped := _dropped.pop("lines", 0):
            line += f"[{dropped} lines were dropped, because nobody read them]\n"
        rest = line.encode(errors="replace")
        with suppress(OSError):
            while rest:
                rest = rest[os.write(2, rest) :]
        _waiting.task_done()
