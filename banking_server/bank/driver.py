"""What the bank borrows from the inside of aiosqlite: one crossing to a connection's thread.

aiosqlite's own methods send each statement to the thread by itself. `_execute`, private to it,
sends a whole function; that it does so is asserted in `tests/bank/test_driver.py`.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import aiosqlite

_T = TypeVar("_T")

SQLITE_VERSION: Final = sqlite3.sqlite_version
"""The version of the SQLite that Python's driver, and so this program, runs with."""


class Connection:
    """A connection to a SQLite file that is there, with a thread of its own."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, path: Path, set_up: Callable[[sqlite3.Connection], None]) -> "Connection":
        """Open the file, and run `set_up` first. Raises `sqlite3.Error`."""
        # "rw" never makes a file. As a URI, since a "?" or "#" in the path must not be syntax.
        connection = await aiosqlite.connect(
            f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None
        )
        opened = cls(connection)
        try:
            await opened.run(set_up)
        except BaseException:
            await opened.close()
            raise
        return opened

    async def run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` on the connection's thread, as one piece."""
        result: _T = await self._connection._execute(  # type: ignore[no-untyped-call]
            work, self._connection._conn
        )
        return result

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.close()
