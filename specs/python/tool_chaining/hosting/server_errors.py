"""The standard error of a server that a program starts over stdio."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final, TextIO

from tool_chaining.text import one_line

_LINE: Final = 8_192
"""The most characters of one line. The rest is read as the next line."""


class ServerErrors:
    """The standard error of one server: each line is passed on, and the last one is kept."""

    def __init__(self, pass_on: Callable[[str], object]) -> None:
        """`pass_on` is called with each line in a thread. If it fails, reading continues."""
        reading, writing = os.pipe()
        self.stream: Final[TextIO] = open(writing, "w")  # noqa: SIM115 - `close` closes it
        self._pass_on = pass_on
        self._last = ""
        self._thread = Thread(target=self._read, args=(reading,), daemon=True)
        self._thread.start()

    def _read(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in iter(partial(lines.readline, _LINE), ""):
                if any(char.isalnum() for char in line):
                    self._last = line
                with suppress(OSError, ValueError):  # Our own standard error may be closed.
                    self._pass_on(line)

    def last_line(self) -> str:
        """Return the last line with a letter or digit, of a server that has ended; or ''.

        It has at most 400 characters. It waits until all lines are passed on, at most a second.
        """
        self.close()
        return self._last[:400]

    def close(self) -> None:
        """Wait until all lines are passed on, for at most a second."""
        self.stream.close()
        # A process that the server started may keep the pipe open.
        self._thread.join(1)


def server_ended(errors: str, code: int | None = None) -> str:
    """Return the message of all three programs for a server that ended before it answered.

    `errors` is the end of its standard error, and `code` its exit code, if that is known.
    """
    how = "ended" if code is None else f"ended with exit code {code}"
    return f"the server {how} instead of answering{wrote_last(errors)}"


def wrote_last(errors: str) -> str:
    """Return the end of a message: the last line of a server's standard error, if there is one."""
    words = one_line(errors)
    return f"; what it wrote last to its standard error: {words}" if words else ""


def http_failure(error: BaseException) -> str:
    """Return the message of all three programs for a failed HTTP request."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, ConnectionRefusedError):
            return "the connection was refused; is the server running?"
        cause = cause.__cause__ or cause.__context__
    return str(error)
