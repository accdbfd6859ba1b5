"""Logging with a limit on repeated messages, so that they cannot fill the disk."""

import atexit
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Final

A_MINUTE: Final = 10
"""The most messages in a minute about one fault. Then one line says that more are left out."""


MOST_WAITING: Final = 1_000
"""The most messages that wait until standard error can take them."""

LAST_SECONDS: Final = 1
"""Seconds that an ending program waits for them."""

STANDARD_ERROR: Final = 2
"""Its file descriptor."""


def log_to_standard_error(line: str = logging.BASIC_FORMAT) -> None:
    """Write messages of all loggers, from WARNING on, to standard error in the format `line`.

    Messages of one repeated fault are limited. If logging is configured already, nothing changes.
    """
    handler = StandardError()
    handler.addFilter(RepeatedFaults())
    logging.basicConfig(level=logging.WARNING, format=line, handlers=[handler])


class StandardError(logging.Handler):
    """Writes messages in a thread, so that a pipe which nobody reads stops nothing else.

    If `MOST_WAITING` messages wait, more are left out and counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Queue[str] = Queue(MOST_WAITING)
        self._left_out = 0
        Thread(target=self._write, daemon=True).start()
        atexit.register(self._finish)

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message to those that wait."""
        try:
            self._waiting.put_nowait(self.format(record))
        except Full:
            self._left_out += 1

    def _write(self) -> None:
        while True:
            lines = self._waiting.get()
            if self._left_out:
                lines += f"\n{self._left_out} messages were left out: nobody read them in time."
                self._left_out = 0
            rest = f"{lines}\n".encode(errors="backslashreplace")
            with suppress(OSError):
                while rest:
                    # Not `sys.stderr`, whose lock would stop the end of the program too.
                    rest = rest[os.write(STANDARD_ERROR, rest) :]
            self._waiting.task_done()

    def _finish(self) -> None:
        end = time.monotonic() + LAST_SECONDS
        while self._waiting.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)


class RepeatedFaults(logging.Filter):
    """Passes at most `A_MINUTE` messages a minute about the same fault.

    A fault is one line of code that logs, and the exception with its line. The text of a message
    does not count, since an attacker could vary it. So the number of faults kept here is limited by
    the code. `monotonic` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}
        """For each fault: the start of its minute, and the number of messages since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the message. The last one before a pause says so."""
        if record.levelno < logging.WARNING:
            return True
        fault = _fault(record)
        now = self._monotonic()
        began, count = self._seen.get(fault, (now, 0))
        left_out = 0
        if now - began >= 60:
            left_out = max(0, count - A_MINUTE - 1)
            began, count = now, 0
        count += 1
        self._seen[fault] = began, count
        if count == A_MINUTE + 1:
            _replace(record, f"{record.getMessage()} (more of the same is left out for a minute)")
            record.exc_info = record.exc_text = record.stack_info = None
        elif left_out:
            _replace(record, f"{record.getMessage()} ({left_out} more of the same were left out)")
        return count <= A_MINUTE + 1


def _replace(record: logging.LogRecord, message: str) -> None:
    record.msg, record.args = message, None


def _fault(record: logging.LogRecord) -> tuple[object, ...]:
    kind, _, trace = record.exc_info or (None, None, None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_at = () if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return (record.pathname, record.lineno, kind, *raised_at)
