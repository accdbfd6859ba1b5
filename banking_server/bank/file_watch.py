"""The files of an open database: whose turn it is to commit, and whether they are still the same.

`.lock`, beside the database, is locked by whoever commits or checkpoints, so that processes take
turns; the lock ends with the process that holds it. In it stands how the last checkpoint left the
database: nothing else writes to the file itself, or makes the write-ahead log shorter.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from banking_server.bank import storage
from banking_server.bank.storage import DatabaseUnavailable

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class DatabaseLost(DatabaseUnavailable):
    """A file of the database was deleted, replaced, overwritten or shortened while it was open."""

    incident = ""


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

    def note(self) -> bytes:
        """Return what the last holder wrote down."""
        return os.pread(self._descriptor, 64, 0)

    def write_down(self, note: bytes) -> None:
        """Leave a note for the next holder; only who holds the lock may."""
        os.pwrite(self._descriptor, note, 0)
        os.ftruncate(self._descriptor, len(note))


class WatchedFiles:
    """The files of one open database. But for `look`, its methods are for who holds the lock."""

    def __init__(self, path: Path, identity: tuple[int, int] | None) -> None:
        """Watch from now on: a connection is open, so that SQLite itself replaces none of them.

        `identity` is what the database's was before that. Raises `DatabaseLost` or `TimeoutError`.
        """
        # SQLite's own files are beside the one that a link leads to.
        self._path, self._real = path, path.resolve()
        self._wal, lock = beside(self._real, "-wal"), beside(self._real, ".lock")
        self.lock = FileLock(lock)
        others = (self._wal, beside(self._real, "-shm"), lock)
        self._identities = {path: identity, **{file: identity_of(file) for file in others}}
        self.lost: DatabaseLost | None = None
        try:
            with self.lock.held(storage.WAIT_SECONDS):
                self.take_note()
                self._log_bytes = 0  # What an earlier process left of it counts as growth.
                self.check()
        except BaseException:
            self.lock.close()
            raise

    def look(self) -> None:
        """Check the files if nobody holds the lock. Raises `DatabaseLost` or `TimeoutError`."""
        with self.lock.held(0):
            self.check()

    def take_note(self) -> None:
        """Write down how a checkpoint, or the start, left the database."""
        self._written, self._log_bytes = _state_of(self._path).written, _state_of(self._wal).size
        self.log_growth = 0
        """By how many bytes the log has grown since then."""
        self.lock.write_down(self._written)

    def check(self) -> None:
        """Raise `DatabaseLost` unless each file is the one that was opened, and whole.

        What is committed to a deleted or replaced file is lost, so nothing of it is acknowledged.
        A copy over the database is the same file, written to by another program.
        """
        if self.lost is not None:
            raise self.lost
        found = {file: _state_of(file) for file in self._identities}
        for file, identity in self._identities.items():
            if found[file].identity != identity:
                self._lose(file)
        if (written := found[self._path].written) != self._written:
            if self.lock.note() not in (written, b""):
                self._lose(self._path)
            self.take_note()  # Another process of ours has made a checkpoint.
        growth = found[self._wal].size - self._log_bytes
        if growth < self.log_growth:
            self._lose(self._wal)
        self.log_growth = growth

    def _lose(self, file: Path) -> None:
        what = f"The database {file}" if file == self._path else f"{file}, of the database,"
        if file == self._wal:
            first = "It had what was done last, which may be missing: put it back, or bring"
        elif file != self._path:
            first = "Nothing else is missing: start again, or bring"
        elif identity_of(file) != self._identities[file]:
            first = f"{self._put_log_aside()}, or bring"
        else:  # What was overwritten is gone, and the log does not belong to what is there now.
            first = "Trust no part of it: bring"
        self.lost = DatabaseLost(
            f"{what} was deleted, replaced, overwritten or shortened while it was in use. Nothing "
            f"was acknowledged after that. {first} a backup back with `banking-server database "
            "restore FILE`; then start again."
        )
        raise self.lost

    def _put_log_aside(self) -> str:
        """Keep our log from a database that was put in the place of ours; say what to do.

        SQLite would take it for that database's own, and ruin it. Where nothing was put in its
        place, the log stays: it is needed if the file is put back.
        """
        ours = self._identities[self._wal]
        number = "" if ours is None else ours[1]
        kept = beside(self._wal, f".lost-{number}")  # The same for all our processes.
        if identity_of(self._real) not in (None, self._identities[self._path]):
            with suppress(OSError):
                if identity_of(self._wal) == ours:
                    self._wal.rename(kept)
        if identity_of(kept) == ours:
            return (
                f"What was done last is in {kept}: put the file back, and that log beside it as "
                f"{self._wal}"
            )
        return f"Put the file back beside {self._wal}, which has what was done last"


class _State(NamedTuple):
    """What is seen of a file; without values, of one that is not there."""

    identity: tuple[int, int] | None = None
    written: bytes = b""
    """Changes when somebody writes to the file."""
    size: int = 0


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what stays the same as long as the file at `path` is the same one; None: no file."""
    return _state_of(path).identity


def _state_of(path: Path) -> _State:
    try:
        found = os.stat(path)
    except OSError:
        return _State()
    written = f"{found.st_mtime_ns} {found.st_size}".encode()
    return _State((found.st_dev, found.st_ino), written, found.st_size)
