"""The files of an open database: whose turn it is to commit, and whether they are still the same.

`.lock`, beside the database, is locked by whoever commits or checkpoints, so that processes take
turns; the lock ends with the process that holds it.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from banking_server.bank.storage import DatabaseUnavailable

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class DatabaseLost(DatabaseUnavailable):
    """A file of the database was deleted or replaced while it was open."""


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file that is kept beside the database at `path`, such as `-wal`."""
    return path.with_name(path.name + suffix)


class FileLock:
    """A lock on one file, which it makes; each object is a holder of its own, for one thread.

    On Windows it locks nothing: there one process at a time should use a database.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Give the file back, and with it the lock."""
        os.close(self._descriptor)

    @contextmanager
    def held(self, wait_seconds: float) -> Iterator[None]:
        """Hold the lock until the end of the block. Raises `TimeoutError` if somebody keeps it.

        It is tried at least once.
        """
        if fcntl is None:
            yield
            return
        give_up_at = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    raise TimeoutError from None
                time.sleep(0.001)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class WatchedFiles:
    """The files of one open database: is each still the one that was opened?

    What is committed to a deleted or replaced file is lost, so nothing of it is acknowledged. A
    file whose content another program changes is not noticed: SQLite documents that as corruption.
    """

    def __init__(self, path: Path, identity: tuple[int, int] | None) -> None:
        """Watch from now on: a connection is open, so that SQLite itself replaces none of them.

        `identity` is that of the file at `path` before the connection was opened.
        """
        # SQLite's own files are beside the one that a link leads to.
        real = path.resolve()
        self.log = beside(real, "-wal")
        others = (self.log, beside(real, "-shm"), beside(real, ".lock"))
        self._identities = {path: identity, **{file: identity_of(file) for file in others}}
        self.lost: DatabaseLost | None = None

    def check(self) -> None:
        """Raise `DatabaseLost` if a file was deleted or replaced, now or at an earlier check."""
        if self.lost is None:
            for file, identity in self._identities.items():
                if identity_of(file) != identity:
                    self.lost = DatabaseLost(
                        f"The file {file} of the database was deleted or replaced while it was in "
                        "use. Nothing was acknowledged after that. Stop each server of it, bring a "
                        "backup back with `banking-server database restore FILE`, and start again."
                    )
        if self.lost is not None:
            raise self.lost


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what stays the same as long as the file at `path` is the same one; None: no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
