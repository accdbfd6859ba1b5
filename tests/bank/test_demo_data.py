"""The shipped data set shows every rule; a mistake in one is named."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.bank.demo_data import read_demo_data
from banking_server.server.open_bank import DEMO_DATA

from .support import DAY, check_books, open_bank, sql

pytestmark = pytest.mark.anyio


async def test_balances_are_as_written_and_history_is_past(tmp_path: Path) -> None:
    now = datetime(2028, 2, 29, 0, 0, tzinfo=UTC)
    path = tmp_path / "bank.db"
    bank = await open_bank(path, now=now)
    await bank.close()
    check_books(path, now)
    balances = dict(sql(path, "SELECT account_id, sum(amount_minor) FROM entry GROUP BY 1"))
    for account in read_demo_data(DEMO_DATA).accounts:
        if account.account_type != "external":
            assert balances.get(account.account_id, 0) == account.balance
    ((newest,),) = sql(path, "SELECT max(posted_at) FROM posting")
    assert now - 2 * DAY < datetime.fromisoformat(newest) <= now
