"""A bank of any size, for measurements."""

import sqlite3


def sqlite_version() -> str:
    """Return the version of the SQLite that this program runs with."""
    return sqlite3.sqlite_version
