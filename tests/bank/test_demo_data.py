"""The shipped data set shows every rule; a mistake in one is named."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.bank.demo_data import DemoDataError, read_demo_data
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


@pytest.mark.parametrize(
    ("file", "part", "instead", "says"),
    [
        ("accounts", "account_type: checking", "account_type: 2", "entry 1, account_type: Input"),
        ("accounts", '"5250.75"', "5250.75", "entry 1, balance: Value error, an amount is written"),
        ("history", 'at: "', 'at: "9 am', "entry 1, at: Value error"),
        ("history", "counter_account_id: acc_", "counter_account_id: no_", "has no such account"),
        ("customers", "- c", "- [", "customers.yaml cannot be read"),
    ],
)
def test_a_mistake_in_the_data_set_is_named(
    tmp_path: Path, file: str, part: str, instead: str, says: str
) -> None:
    for path in DEMO_DATA.glob("*.yaml"):
        shutil.copy(path, tmp_path)
    wrong = tmp_path / f"{file}.yaml"
    text = wrong.read_text()
    assert part in text
    wrong.write_text(text.replace(part, instead, 1))
    with pytest.raises(DemoDataError) as mistake:
        read_demo_data(tmp_path)
    assert says in str(mistake.value)
    assert "\n" not in str(mistake.value)
