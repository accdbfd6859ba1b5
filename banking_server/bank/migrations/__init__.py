"""Bringing a bank of an older format up to this one, with Alembic, whole or not at all.

A format is a revision: format 2 is `0002`. What each of them is stands in `formats`, and stays as
it is. Alembic is loaded only where there is something to do.
"""

import itertools
import logging
import os
import re
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import URL

from banking_server.bank.backup import back_up
from banking_server.bank.file_lock import FileLock
from banking_server.bank.location import Location
from banking_server.bank.models import SCHEMA_VERSION
from banking_server.bank.sqlite_file import LOCK_WAIT_SECONDS, beside, connect
from banking_server.bank.storage import DatabaseUnavailable

logger = logging.getLogger(__name__)

FORMATS: Final = Path(__file__).parent / "formats"
"""What Alembic runs. No package: nobody else can."""

_NAMED: Final = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|FUNCTION|TRIGGER) (\w+)")
_ON: Final = re.compile(r"\bON (\w+)")


def statements(number: int, database: str) -> list[str]:
    """Return what makes the tables, indexes and triggers of a format in an empty database."""
    text = (FORMATS / "versions" / f"format_{number}.{database}.sql").read_text(encoding="utf-8")
    return text.strip().split("\n\n")


def about(statement: str) -> tuple[str, str]:
    """Return what a statement of a format makes (`TABLE`, `INDEX`, …), and for which table."""
    named = _NAMED.match(statement)
    if named is None:
        raise ValueError(f"not a statement of a format: {statement}")
    on = _ON.search(statement)
    return named[1], named[2] if on is None or named[1] == "TABLE" else on[1]


def upgrade_file(path: Path) -> None:
    """Bring a SQLite file of an older format up to this one, after a backup of it beside it.

    Processes that do so at once wait for the first, and then have nothing to do.
    Raises `DatabaseUnavailable`, `OSError` or `sqlite3.Error`; the file is then as it was.
    """
    lock = FileLock(beside(path, ".lock"))
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: connect(path, wait_seconds=LOCK_WAIT_SECONDS),
        poolclass=sa.NullPool,
    )
    try:
        with lock.held(lambda: True), engine.connect() as connection:
            _upgrade_file(path, connection)
    except sa.exc.IntegrityError:
        raise _refused(path, "something in it breaks a rule of that format") from None
    except sa.exc.DBAPIError as error:
        raise error.orig or error from None
    finally:
        lock.close()


def _upgrade_file(path: Path, connection: sa.Connection) -> None:
    def number(statement: str) -> int:
        return int(connection.exec_driver_sql(statement).scalar_one())

    # Foreign keys are left off, and the names in them alone, while tables are made anew.
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    connection.exec_driver_sql("PRAGMA synchronous = FULL")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    version = number("PRAGMA user_version")
    if version == SCHEMA_VERSION:
        return  # Another process was first.
    backup = _back_up(path, version)
    logger.warning(
        "%s is brought up from format %d to %d; as it was, it is kept in %s",
        *(path, version, SCHEMA_VERSION, backup),
    )
    _upgrade(connection, version)
    if connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall():
        raise _refused(path, "some of its records refer to others that are not there")
    connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()


def _back_up(path: Path, version: int) -> Path:
    """Copy the file, and check the copy; one from an earlier attempt is never overwritten."""
    for number in itertools.count(1):
        backup = beside(path, f".format-{version}.backup{f'-{number}' if number > 1 else ''}")
        if not os.path.lexists(backup):
            back_up(path, backup)
            break
    return backup


def upgrade_database(url: URL) -> None:
    """Bring a PostgreSQL database of an older format up to this one. Raises `DatabaseUnavailable`.

    Servers that do so at once wait for the first, and then have nothing to do.
    """
    from banking_server.bank import postgresql

    def creator() -> object:
        raw = postgresql.connect(url)
        raw.autocommit = False
        return raw

    engine = sa.create_engine("postgresql+psycopg://", creator=creator, poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            for name in ("statement_timeout", "lock_timeout"):
                connection.exec_driver_sql(f"SET LOCAL {name} = 0")
            connection.exec_driver_sql(postgresql.LOCK_SCHEMA)
            stored = "SELECT version_num FROM alembic_version"
            version = int(connection.exec_driver_sql(stored).scalar_one())
            if version < SCHEMA_VERSION:
                logger.warning(
                    "%s is brought up from format %d to %d", url, version, SCHEMA_VERSION
                )
                _upgrade(connection, version)
    except sa.exc.DBAPIError as error:
        raise _refused(url, f"PostgreSQL reports an error ({type(error.orig).__name__})") from None


def _refused(location: Location, cause: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database {location} cannot be brought up to format {SCHEMA_VERSION}, and is as it "
        f"was: {cause}."
    )


def _upgrade(connection: sa.Connection, version: int) -> None:
    """Run every revision after this format's, in the transaction that has begun."""
    config = Config()
    config.set_main_option("script_location", str(FORMATS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.stamp(config, f"{version:04}")
    command.upgrade(config, f"{SCHEMA_VERSION:04}")
