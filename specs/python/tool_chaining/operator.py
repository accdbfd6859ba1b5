"""The standard streams of a program, for an operator who may not read them.

A write to a full pipe blocks, and would stop the protocol on the event loop. So a thread writes the
lines on standard error.
"""

import atexit
import io
import logging
import os
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from functools import cache
from queue import Full, Queue
from threading import Thread
from typing import Any, Final

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


class _Unread(io.FileIO):
    """A pipe whose reader may go away, as `| head -1` does, which changes nothing else."""

    def write(self, data: Any) -> int:
        """Write, or discard what nobody reads."""
        try:
            return super().write(data)
        except OSError as error:
            # Discard the rest, or Python would try to write it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError):
                raise
            return len(data)


def prepare_streams() -> None:
    """Let the standard streams take any character, be closed, and lose their readers.

    A full disk still raises `OSError`, once.
    """
    # Otherwise the next file to be opened gets the stream's number, and a child process writes
    # to it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as we run
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        # A character that the terminal's encoding lacks is shown as an escape, not as a crash.
        stream.reconfigure(errors="backslashreplace")
        if stream is getattr(sys, f"__{name}__") and not stream.isatty():
            pipe = io.BufferedWriter(_Unread(stream.fileno(), "w", closefd=False))
            lines = stream.line_buffering
            setattr(
                sys,
                name,
                io.TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=lines),
            )


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
