"""A generated bank is one as the ledger would have written it."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.bank.scale import Scale, account_id, add_at_scale, customer_id

from ..kit.bank import START, fill

pytestmark = pytest.mark.anyio

_EVERYTHING_IN_ORDER = {
    "each posting has two sides that cancel out": """
        SELECT posting_id FROM entry GROUP BY posting_id
        HAVING sum(amount_minor) <> 0 OR count(*) <> 2""",
    "an entry has its posting's time": """
        SELECT entry_id FROM entry JOIN posting USING (posting_id)
        WHERE entry.posted_at <> posting.posted_at""",
    "the totals of each entry are the sums so far": """
        SELECT entry_id FROM (
            SELECT *, sum(max(amount_minor, 0)) OVER earlier AS credits,
                sum(max(-amount_minor, 0)) OVER earlier AS debits
            FROM entry
            WINDOW earlier AS (PARTITION BY account_id ORDER BY posted_at, posting_id))
        WHERE debits_after_minor <> debits OR credits_after_minor <> credits""",
    "the totals of each account are its last entry's": """
        SELECT account_id FROM account LEFT JOIN (
            SELECT account_id, sum(max(amount_minor, 0)) AS credits,
                sum(max(-amount_minor, 0)) AS debits, max(posted_at) AS last
            FROM entry GROUP BY account_id) USING (account_id)
        WHERE credits_posted_minor <> coalesce(credits, 0)
            OR debits_posted_minor <> coalesce(debits, 0) OR last_posted_at IS NOT last
            OR debits_pending_minor <> 0""",
    "nobody was ever below zero": """
        SELECT entry_id FROM entry JOIN account USING (account_id)
        WHERE account_type <> 'equity' AND credits_after_minor < debits_after_minor""",
    "every key leads somewhere": "PRAGMA foreign_key_check",
}


async def test_a_generated_bank_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    await fill(path, START)

    def schema(bank: sqlite3.Connection) -> list[str]:
        return bank.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()

    with closing(sqlite3.connect(path)) as bank:
        before = schema(bank)
        (entries_before,) = bank.execute("SELECT count(*) FROM entry").fetchone()
    add_at_scale(path, Scale(accounts=200, entries=4_000), datetime.now(UTC))

    with closing(sqlite3.connect(path)) as bank:
        assert schema(bank) == before
        assert bank.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert bank.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        wrong = {
            what: bank.execute(query).fetchall() for what, query in _EVERYTHING_IN_ORDER.items()
        }
        assert wrong == {what: [] for what in _EVERYTHING_IN_ORDER}
        made = "SELECT count(*) FROM account WHERE customer_id LIKE 'SCALE%'"
        assert bank.execute(made).fetchone() == (200,)
        assert bank.execute("SELECT count(*) FROM entry").fetchone() == (entries_before + 4_000,)
        of_account = "SELECT count(*) FROM entry WHERE account_id = ?"
        assert bank.execute(of_account, (account_id(0),)).fetchone() == (401,)
        owner = "SELECT customer_id FROM account WHERE account_id = ?"
        assert bank.execute(owner, (account_id(9),)).fetchone() == (customer_id(0),)
        assert bank.execute(owner, (account_id(10),)).fetchone() == (customer_id(1),)


@pytest.mark.parametrize(("accounts", "entries"), [(10, 1000), (25, 1000), (20, 199), (20, 205)])
def test_a_size_that_cannot_be_made(accounts: int, entries: int) -> None:
    with pytest.raises(ValueError, match=r"^(accounts|entries): "):
        Scale(accounts, entries)
