"""A lock on a file, by which processes take turns; it ends with the process that holds it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_TRY_EVERY_SECONDS = 0.001


class FileLock:
    """A lock on one file, which it makes; each object is a holder of its own.

    On Windows it locks nothing: there one process at a time should use a database.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Give the file back, and with it the lock."""
        os.close(self._descriptor)

    def note(self) -> bytes:
        """Return what the last holder wrote down."""
        return os.pread(self._descriptor, 64, 0)

    def write_down(self, note: bytes) -> None:
        """Leave a note for the next holder; only who holds the lock may."""
        os.pwrite(self._descriptor, note, 0)
        os.ftruncate(self._descriptor, len(note))

    @contextmanager
    def held(self, wanted: Callable[[], object]) -> Iterator[bool]:
        """Hold the lock until the end of the block; False if it was not to be had.

        It is waited for as long as `wanted()` is true, and tried once in any case.
        """
        if not self._take(wanted):
            yield False
            return
        try:
            yield True
        finally:
            if fcntl is not None:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _take(self, wanted: Callable[[], object]) -> bool:
        while fcntl is not None:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wanted():
                    return False
                time.sleep(_TRY_EVERY_SECONDS)
        return True
