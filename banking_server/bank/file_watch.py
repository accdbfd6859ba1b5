"""The files of an open database: whose turn it is to commit, and whether they are still the same.

Whoever commits or checkpoints locks `.lock`, beside the database, so that processes take turns. The
lock ends with the process that holds it.
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
    """Return the path of a file beside the database at `path`, such as `-wal`."""
    return path.with_name(path.name + suffix)


class FileLock:
    """A lock on one file, which it creates. Each object is a separate holder, for one thread.

    On Windows it locks nothing: there one process at a time should use a database.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        os.close(self._descriptor)

    @contextmanager
    def held(self, wait_seconds: float) -> Iterator[None]:
        """Hold the lock during the block. Raises `TimeoutError` if somebody else keeps it.

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

    Commits to a deleted or replaced file are lost, so they are not acknowledged. If another program
    changes a file's content, this notices nothing: SQLite documents that as corruption.
    """

    def __init__(self, path: Path, identity: tuple[int, int] | None) -> None:
        """Watch from now on: a connection is open, so SQLite itself replaces none of the files.

        `identity` is that of the file at `path` before the connection was opened.
        """
        # If `path` is a link, SQLite's own files are beside its target.
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
                        "use. Nothing was acknowledged after that. Stop its servers, restore a "
                        "backup with `banking-server database restore FILE`, and start again."
                    )
        if self.lost is not None:
            raise self.lost


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the identity of the file at `path`, which a replacement changes; None: no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
