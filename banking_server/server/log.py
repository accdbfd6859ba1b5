"""Logging that never waits for its reader."""

import atexit
import logging
import os
import time
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Final

MOST_WAITING: Final = 1_000
"""The most messages that wait until standard error can take them."""

LAST_SECONDS: Final = 1
"""Seconds that an ending program waits for them."""

STANDARD_ERROR: Final = 2
"""Its file descriptor."""


def log_to_standard_error(line: str = logging.BASIC_FORMAT) -> None:
    """Write messages of all loggers, from WARNING on, to standard error in the format `line`.

    If logging is configured already, nothing changes.
    """
    logging.basicConfig(level=logging.WARNING, format=line, handlers=[StandardError()])


class StandardError(logging.Handler):
    """Writes messages in a thread, so that an unread pipe blocks nothing else.

    If `MOST_WAITING` messages wait, more are left out and counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Queue[str] = Queue(MOST_WAITING)
        self._left_out = 0
        Thread(target=self._write, daemon=True).start()
        atexit.register(self._finish)

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message to the queue."""
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
