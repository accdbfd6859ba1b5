"""Every kind of fault is found, and nothing is called one that is none."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from banking_server.bank.consistency_check import FAULTS_OF_A_KIND, find_faults

from ..kit.words import SAVINGS
from .support import open_bank, use

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def lived_in(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(template, tmp_path_factory.mktemp("lived") / "bank.db"))

    async def fill() -> None:
        bank = await open_bank(path)
        await use(bank)
        await bank.close()

    asyncio.run(fill())
    return path


@pytest.fixture
def path(lived_in: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(lived_in, tmp_path / "bank.db"))


def change_behind_its_back(path: Path, statement: str) -> None:
    """Change what no constraint and no trigger would let anybody change."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type='trigger'"):
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(statement).rowcount > 0, statement


async def faults_of(path: Path) -> list[str]:
    bank = await open_bank(path)
    found = await find_faults(bank)
    await bank.close()
    return found


PLAIN = "posting_id = (SELECT posting_id FROM posting WHERE description = 'plain')"
CREDIT = f"UPDATE entry SET %s WHERE {PLAIN} AND side = 'credit'"
TRANSFER = "UPDATE transfer SET %s WHERE memo = 'plain'"
ACCOUNT = f"UPDATE account SET %s WHERE account_id = '{SAVINGS}'"

FAULTS = {
    "refers to a customer that is not there": "UPDATE approval SET customer_id = 'x'",
    "SQLite: CHECK constraint failed in transfer": TRANSFER % "status = 'lost'",
    "has 2 entries that sum to 1;": CREDIT % "amount_minor = 101",
    "has 1 entries that sum to -100;": f"DELETE FROM entry WHERE {PLAIN} AND side = 'credit'",
    "it must be two of its date": CREDIT % "posted_at = '2030-01-01T00:00:00.000000Z'",
    "keeps debits of": ACCOUNT % "credits_posted_minor = credits_posted_minor + 1",
    " and a last entry at None; its entries have ": ACCOUNT % "last_posted_at = NULL",
    "keeps 1 as pending; its pending transfers sum": ACCOUNT % "debits_pending_minor = 1",
    "does not continue the running totals": CREDIT % "credits_after_minor = 1",
    "is posted, but has no posting": "UPDATE posting SET transfer_id = NULL, kind = 'history'",
    "but has no posting of its accounts, amount and time": TRANSFER % "amount_minor = 99",
    "is voided, but has posting": TRANSFER % "status = 'voided', posted_at = NULL",
}


@pytest.mark.parametrize(("line", "statement"), FAULTS.items())
async def test_a_fault_is_found(path: Path, line: str, statement: str) -> None:
    change_behind_its_back(path, statement)
    found = await faults_of(path)
    assert [each for each in found if line in each], found
    assert all("\n" not in each for each in found)


async def test_faults_of_one_kind_are_limited(path: Path) -> None:
    change_behind_its_back(path, "UPDATE entry SET debits_after_minor = debits_after_minor + 7")
    found = await faults_of(path)
    assert sum("running totals" in each for each in found) == FAULTS_OF_A_KIND
    assert "and more of this kind" in found


@pytest.mark.parametrize(
    ("line", "statements"),
    [
        ("the trigger entry_balances is missing", "DROP TRIGGER entry_balances"),
        ("the index transfer_reserves is missing", "DROP INDEX transfer_reserves"),
        ("the table entry is missing", "DROP TABLE entry"),
        (
            "the trigger back_door does not belong to this program",
            "CREATE TRIGGER back_door AFTER INSERT ON audit_event BEGIN "
            "UPDATE account SET is_locked = 0; END",
        ),
        (
            "the view rich does not belong to this program",
            "CREATE VIEW rich AS SELECT * FROM account",
        ),
        ("the table notes does not belong to this program", "CREATE TABLE notes (text TEXT)"),
        (
            "the trigger entry_balances differs from this version's schema",
            "DROP TRIGGER entry_balances; "
            "CREATE TRIGGER entry_balances BEFORE INSERT ON entry BEGIN SELECT 1; END",
        ),
        (
            "the table transfer differs from this version's schema",
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET "
            "sql = replace(sql, 'amount_minor > 0', 'amount_minor > -9') WHERE name = 'transfer'",
        ),
    ],
)
async def test_a_missing_extra_or_changed_database_object_is_named(
    path: Path, line: str, statements: str
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
    assert line in await faults_of(path)
