"""A command in a real terminal, and the person who sits there."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from typing import Self

from .command import PATIENCE, end_with_the_tests, environment


class Terminal:
    """A command that runs in a terminal, and the person who sits there."""

    def __init__(self, arguments: Sequence[str], **variables: str) -> None:
        self.screen = ""
        self._seen = 0
        main, terminal = pty.openpty()
        self._main: int | None = main

        def sit_down() -> None:
            end_with_the_tests()
            # Ctrl-C reaches who has the terminal for its own, and does what it does for a person,
            # even where whatever runs the tests ignores it, as a job in the background does.
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            arguments,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment(**{"TERM": "xterm-256color", **variables}),
            start_new_session=True,
            preexec_fn=sit_down,
        )
        os.close(terminal)

    def wait_for(self, text: str) -> None:
        """Read the screen until it shows `text`, after what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < end, f"no {text!r} in {self.screen!r}"
            assert self._read(), f"ended without {text!r}: {self.screen!r}"
        self._seen = found + len(text)

    def type(self, line: str) -> None:
        self.press(f"{line}\n")

    def press(self, keys: str) -> None:
        assert self._main is not None
        os.write(self._main, keys.encode())

    def interrupt_until(self, text: str) -> None:
        """Press Ctrl-C at a prompt until `text` shows that it was seen.

        CPython misses one that comes between a key and its waiting for the next: a person would
        press again.
        """
        end = time.monotonic() + PATIENCE
        while self.screen.find(text, self._seen) < 0:
            assert time.monotonic() < end, f"no {text!r} in {self.screen!r}"
            self.press("\x03")
            while select.select([self._main], [], [], 1)[0]:
                assert self._read(), f"ended without {text!r}: {self.screen!r}"
        self._seen = self.screen.find(text, self._seen) + len(text)

    def finish(self) -> int:
        """Read what is left and return the exit code."""
        while self._read():
            pass
        code = self.process.wait(PATIENCE)
        self.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the terminal away, and whatever still runs in it."""
        if self._main is not None:
            self.process.kill()
            self.process.wait()
            os.close(self._main)
            self._main = None

    def _read(self) -> bool:
        ready, _, _ = select.select([self._main], [], [], PATIENCE)
        assert ready, f"nothing happens any more: {self.screen!r}"
        try:
            read = os.read(self._main, 65536)
        except OSError:  # Linux says so when the other side is closed.
            return False
        self.screen += read.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(read)
