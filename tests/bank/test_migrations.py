"""From an older format to this one: everything is kept, and what is made is what is new made."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import URL

from banking_server.bank import postgresql
from banking_server.bank.accounts import get_balance
from banking_server.bank.approvals import list_open_approvals
from banking_server.bank.audit import list_events
from banking_server.bank.handoffs import list_open_handoffs
from banking_server.bank.migrations import about, statements
from banking_server.bank.models import SCHEMA_VERSION, schema
from banking_server.bank.storage import DatabaseUnavailable
from banking_server.bank.transfers import Posted, WrongCode, settle
from banking_server.bank.upkeep import find_faults

from ..kit import postgres
from ..kit.words import EVERYDAY, SAVINGS
from .support import DAY, HOUR, NOW, call, check_books, confirm, open_bank, posted, sql

pytestmark = pytest.mark.anyio

FORMAT_1 = Path(__file__).with_name("format_1.sql")
"""A bank with something of everything, made by version 0.1 and dumped by SQLite."""

ROOT = Path(__file__).parents[2]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "bank.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FORMAT_1.read_text(encoding="utf-8"))
    return path


def everything(path: Path, columns: dict[str, list[str]]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table: sql(path, f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid")
        for table, names in columns.items()
    }


def columns_of(path: Path) -> dict[str, list[str]]:
    tables = sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        table: [name for (name,) in sql(path, f"SELECT name FROM pragma_table_info('{table}')")]
        for (table,) in tables
    }


def made_in(path: Path) -> dict[str, str]:
    found = sql(path, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: " ".join(text.split()) for name, text in found}


def backups(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.glob("*.backup*"))


async def test_everything_is_kept_and_the_books_balance(
    old: Path, template: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = columns_of(old)
    before = everything(old, columns)
    assert all(before.values()), "the sample has something of everything"
    shape = made_in(old)

    bank = await open_bank(old)
    assert everything(old, columns) == before
    assert made_in(old) == made_in(template)
    assert sql(old, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert sql(old, "SELECT version_num FROM alembic_version") == [(f"{SCHEMA_VERSION:04}",)]
    check_books(old, NOW)
    assert await bank.read(find_faults) == []

    # The backup is what there was, in one file that is its owner's only; and it is said where.
    assert backups(old) == ["bank.db.format-1.backup"]
    backup = old.with_name("bank.db.format-1.backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert (made_in(backup), everything(backup, columns)) == (shape, before)
    assert [each.getMessage() for each in caplog.records] == [
        f"{old} is brought up from format 1 to {SCHEMA_VERSION}; as it was, it is kept in {backup}"
    ]

    # It is a bank like any other.
    now = NOW + HOUR + timedelta(minutes=5)
    ((waiting,),) = sql(
        old, "SELECT transfer_id FROM transfer WHERE status = 'pending' AND wrong_codes = 1"
    )
    ((available,),) = sql(
        old, f"SELECT sum(amount_minor) - 4100 FROM entry WHERE account_id = '{EVERYDAY}'"
    )
    balance = await get_balance(bank, call(at=now), EVERYDAY)
    assert balance.available_minor == available  # type: ignore[union-attr]
    assert isinstance(await confirm(bank, waiting, code="000000", at=now, agreed=False), WrongCode)
    assert isinstance(await confirm(bank, waiting, at=now), Posted)
    assert len(await list_open_approvals(bank, now)) == len(await list_open_handoffs(bank)) == 1
    assert len(await list_events(bank)) == len(before["audit_event"]) + 3
    await settle(bank, as_of=(NOW + 9 * DAY).date(), now=now)
    await posted(bank, "1.00", source=SAVINGS, target=EVERYDAY, at=now)
    await bank.close()
    check_books(old, now)


async def test_a_file_of_this_format_is_left_alone(path_of_file: Path) -> None:
    await (await open_bank(path_of_file)).close()
    assert backups(path_of_file) == []


@pytest.fixture
def path_of_file(template: Path, tmp_path: Path) -> Path:
    path = tmp_path / "new.db"
    path.write_bytes(template.read_bytes())
    return path


LIGHT = """
import asyncio, sys
from pathlib import Path
from banking_server.bank.rules import Rules
from banking_server.bank.opening import open_bank
from datetime import datetime, UTC

async def start():
    bank = await open_bank(Path(sys.argv[1]), rules=Rules(), code_key=b"k",
        demo_data=Path(sys.argv[2]), now=datetime.now(UTC), may_create=True)
    await bank.close()

asyncio.run(start())
"""


def test_neither_alembic_nor_psycopg_is_loaded_without_need(path_of_file: Path) -> None:
    told = LIGHT + "print(*{'alembic', 'psycopg', 'mako'} & {*sys.modules})"
    for path in (path_of_file, path_of_file.with_name("made.db")):
        assert run_alone(told, path).stdout == "\n"


def run_alone(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, path, ROOT / "data"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )


async def test_processes_that_start_at_once_on_an_old_file(old: Path) -> None:
    command = [sys.executable, "-c", LIGHT, old, ROOT / "data"]
    started = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(3)
    ]
    said = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert sum("is brought up" in words for words in said) == 1
    assert backups(old) == ["bank.db.format-1.backup"]
    check_books(old, NOW)


def statements_of_an_upgrade(path: Path) -> int:
    """Upgrade a copy; return how many statements SQLite runs for it."""
    copy = path.with_name("counted.db")
    copy.write_bytes(path.read_bytes())
    child = killed_at(10**9, copy)
    assert child > 40
    return child


def killed_at(number: int, path: Path) -> int:
    """Upgrade in a child that is killed before it runs this statement; return how many it ran."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def each(_: str) -> None:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

        from banking_server.bank import migrations

        connect = migrations.connect

        def watched(where: Path, *, wait_seconds: float) -> sqlite3.Connection:
            connection = connect(where, wait_seconds=wait_seconds)
            connection.set_trace_callback(each)
            return connection

        migrations.connect = watched
        try:
            migrations.upgrade_file(path)
        finally:
            os.write(writing, str(count).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return int(said or 0)


async def test_killed_in_the_middle_it_is_as_it_was(old: Path) -> None:
    columns, shape = columns_of(old), made_in(old)
    before = everything(old, columns)
    last = statements_of_an_upgrade(old)
    for number in (*range(3, last, last // 8), last):
        killed_at(number, old)
        assert sql(old, "PRAGMA user_version") == [(1,)]
        assert (made_in(old), everything(old, columns)) == (shape, before)
    await (await open_bank(old)).close()
    assert everything(old, columns) == before
    check_books(old, NOW)
    for name in backups(old):
        assert everything(old.with_name(name), columns) == before


async def test_what_breaks_a_rule_of_the_new_format_is_refused_and_stays_as_it_was(
    old: Path,
) -> None:
    sql(old, "DROP TRIGGER entry_is_append_only_UPDATE")
    overdrawn = f"side = 'debit' AND account_id = '{EVERYDAY}'"
    sql(old, f"UPDATE entry SET amount_minor = -10000000 WHERE {overdrawn}")
    shape = made_in(old)
    with pytest.raises(DatabaseUnavailable) as refused:
        await open_bank(old)
    assert "is as it was: something in it breaks a rule of that format." in str(refused.value)
    assert made_in(old) == shape


# --- what a format is


@pytest.mark.parametrize(
    "dialect", [sqlite_dialect.dialect(), postgresql.DIALECT], ids=lambda dialect: dialect.name
)
def test_the_newest_format_is_what_the_models_say(dialect: sa.Dialect) -> None:
    """If this fails, the tables have changed: that takes a new format, and a way to get there."""
    frozen = statements(SCHEMA_VERSION, dialect.name)
    made = [text for text in schema(dialect) if "alembic_version" not in text]
    assert [" ".join(text.split()) for text in frozen] == [" ".join(text.split()) for text in made]


def test_what_a_statement_makes_is_recognised() -> None:
    assert about("CREATE UNIQUE INDEX a ON b (c)") == ("INDEX", "b")
    with pytest.raises(ValueError, match="DROP"):
        about("DROP TABLE a")


SHAPE = """
SELECT 'column', table_name, column_name, data_type, is_nullable, column_default, collation_name
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid),
    '', '', '' FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'index', tablename, indexname, indexdef, '', '', '' FROM pg_indexes
    WHERE schemaname = 'public'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), '', '', ''
    FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'function', '', proname, pg_get_functiondef(oid), '', '', '' FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""


@pytest.mark.needs_program(postgres.MISSING)
async def test_what_is_migrated_on_postgresql_is_what_is_new(
    empty: URL, database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for statement in (
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
        "INSERT INTO alembic_version VALUES ('0001')",
    ):
        sql(empty, statement)
    await (await open_bank(empty)).close()
    assert sql(empty, SHAPE) == sql(database.reset(), SHAPE)
    assert sql(empty, "SELECT * FROM alembic_version") == [(f"{SCHEMA_VERSION:04}",)]
    assert f"is brought up from format 1 to {SCHEMA_VERSION}" in caplog.text
