"""A program under test: started in a process group of its own, and never left behind.

Process groups are POSIX: the suite runs on Linux and macOS.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Self

STOP_SECONDS = 1.0
"""Seconds that a program may take to stop by itself once its input has ended."""

OUTPUT_BYTES = 64 * 1024
"""Bytes of captured output that are kept: the last ones, where errors stand."""


class CannotStart(Exception):
    """The program could not be started; the message says why."""


class ChildProcess:
    """A running program. Leaving the `with` block stops it and everything it started.

    With `interactive`, its standard input and output are pipes for the caller; otherwise it has
    no input, and its output is captured like its errors, which always are.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        interactive: bool,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._files = contextlib.ExitStack()
        self._errors: IO[bytes] = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._output: IO[bytes] | None = (
            None if interactive else self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        )
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running it is what the user asked for
                list(command),
                stdin=subprocess.PIPE if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._output is None else self._output,
                stderr=self._errors,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            self._files.close()
            raise CannotStart(f"cannot start {command[0]!r}: {error.strerror or error}") from error

    @property
    def input(self) -> IO[bytes]:
        """Its standard input. Raises RuntimeError if it is not interactive."""
        if self._process.stdin is None:
            raise RuntimeError("this program was started without pipes")
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Its standard output. Raises RuntimeError if it is not interactive."""
        if self._process.stdout is None:
            raise RuntimeError("this program was started without pipes")
        return self._process.stdout

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, or None if it still runs after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def captured_output(self) -> str:
        """Return the end of what it printed; empty if it is interactive."""
        return "" if self._output is None else _tail(self._output)

    def captured_errors(self) -> str:
        """Return the end of what it wrote to its standard error."""
        return _tail(self._errors)

    def stop(self) -> None:
        """Stop it, and its whole process group with it."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # It has gone already, and left input unread.
                self._process.stdin.close()
            self.wait(STOP_SECONDS)
        self._kill_group()
        self._process.wait()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # Nobody is left in it.
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._files.close()


def _tail(file: IO[bytes]) -> str:
    # The child writes at an offset that it shares with this file, so nothing here may seek.
    size = os.fstat(file.fileno()).st_size
    start = max(0, size - OUTPUT_BYTES)
    return os.pread(file.fileno(), size - start, start).decode("utf-8", "replace")
