"""A program under test, in its own process group, which is always stopped at the end.

Process groups are POSIX: the suite runs on Linux and macOS.
"""

import contextlib
import os
import queue
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Final, cast

from tool_chaining_conformance.errors import CannotStart

STOP_SECONDS: Final = 1.0
"""Seconds that a program may take to end after its input has ended."""

OUTPUT_BYTES: Final = 1024 * 1024
"""Bytes of captured output to read: the last ones, with errors and results."""

QUEUED_LINES: Final = 8
"""Lines of output that may wait to be read. A program that writes more has to wait."""


LAST_LINES: Final = 10
"""Lines of standard error that a message shows: the last line of Node's is its version."""


def wrote_last(errors: str) -> str:
    """Return the end of a message about a program: what it wrote last, if anything.

    Lines without letters and digits are left out. The others are not cut, since the redaction must
    still find a secret in them.
    """
    written = [line for line in errors.splitlines() if any(char.isalnum() for char in line)]
    lines = [line.rstrip() for line in written[-LAST_LINES:]]
    if len(lines) < 2:
        return f"; it wrote to its standard error: {lines[0].strip(' |')}" if lines else ""
    return "; it wrote last to its standard error:\n" + "\n".join(lines)


class _Written:
    """What a program writes to a file without a name, of which only the end is read."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the program
        self._seen = 0

    def text(self, since: int = 0) -> str:
        """Return what was written after so many bytes."""
        # Not `seek`, which would move the place where the program writes.
        start = max(since, self._size() - OUTPUT_BYTES)
        return os.pread(self.file.fileno(), OUTPUT_BYTES, start).decode("utf-8", "replace")

    def new_text(self) -> str:
        """Return what was written since the last call of this method."""
        since, self._seen = self._seen, self._size()
        return self.text(since)

    def _size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    def close(self) -> None:
        """Read no more."""
        self.file.close()


class _Lines:
    """The lines of a program's output on a pipe."""

    def __init__(self, pipe: IO[bytes], longest: int) -> None:
        self._pipe = pipe
        self._longest = longest
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUED_LINES)
        # Reading needs a thread, since it blocks while the program writes nothing.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := self._pipe.readline(self._longest):
                self._queue.put(line)
        self._queue.put(None)

    def next(self, seconds: float) -> bytes | None:
        """Return the next line, or None at the end. Raises queue.Empty after `seconds`."""
        line = self._queue.get(timeout=max(0.0, seconds))
        if line is None:
            self._queue.put(None)
        return line

    def close(self) -> None:
        """Read no more."""
        end = time.monotonic() + STOP_SECONDS
        while self._reader.is_alive() and time.monotonic() < end:
            # It may wait for room in the queue.
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=0.05)
        # A process that left its group may keep the pipe open. Its reader ends with this process.
        if not self._reader.is_alive():
            self._pipe.close()


class ChildProcess:
    """A running program. `close` stops it and everything it started.

    With `longest_line`, the caller writes its standard input and reads the lines of its output;
    longer lines come in parts of so many bytes. Otherwise it has no input, and its output is
    captured. Its standard error is always captured.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        longest_line: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        interactive = longest_line is not None
        self._written, self._errors = _Written(), _Written()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running it is what the user asked for
                list(command),
                stdin=subprocess.PIPE if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE if interactive else self._written.file,
                stderr=self._errors.file,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            self._written.close()
            self._errors.close()
            is_missing = isinstance(error, FileNotFoundError)
            why = "there is no such command" if is_missing else error.strerror or error
            raise CannotStart(f"cannot start {command[0]!r}: {why}") from error
        self._input = -1
        if self._process.stdin is not None:
            self._input = self._process.stdin.fileno()
            os.set_blocking(self._input, False)
        self._lines: _Lines | None = None
        if self._process.stdout is not None and longest_line is not None:
            self._lines = _Lines(self._process.stdout, longest_line)

    def send(self, line: bytes, seconds: float) -> None:
        """Write a line to its standard input.

        Raises OSError if it has ended, and TimeoutError if it does not read it in time.
        """
        left, end = line + b"\n", time.monotonic() + seconds
        while left:
            free = select.select([], [self._input], [], max(0.0, end - time.monotonic()))[1]
            if not free:
                raise TimeoutError("it does not read its input")
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._input, left) :]

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, or None if it still runs after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def next_line(self, seconds: float) -> bytes | None:
        """Return the next line of its output, or None at the end.

        Raises queue.Empty after `seconds`.
        """
        return cast(_Lines, self._lines).next(seconds)

    def captured_output(self) -> str:
        """Return the end of its captured standard output."""
        return self._written.text()

    def captured_errors(self) -> str:
        """Return the end of its standard error."""
        return self._errors.text()

    def new_errors(self) -> str:
        """Return its standard error since the last call of this method."""
        return self._errors.new_text()

    def stop(self) -> None:
        """Stop it, and its whole process group with it."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # It has ended and left input unread.
                self._process.stdin.close()
            self.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # The group is empty.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Stop it, and read no more."""
        self.stop()
        self._written.close()
        self._errors.close()
        if self._lines is not None:
            self._lines.close()
