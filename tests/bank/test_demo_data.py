"""The shipped data set shows every rule; a mistake in one is named."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.bank.demo_data import DemoDataError, read_demo_data

from ..kit.words import EVERYDAY
from .support import DATA, DAY, check_books, open_bank, sql

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_balances_are_as_written_and_history_is_past(tmp_path: Path) -> None:
    now = datetime(2028, 2, 29, 0, 0, tzinfo=UTC)
    path = tmp_path / "bank.db"
    bank = await open_bank(path, now=now)
    await bank.close()
    check_books(path, now)
    balances = dict(sql(path, "SELECT account_id, sum(amount_minor) FROM entry GROUP BY 1"))
    for account in read_demo_data(DATA).accounts:
        if account.account_type != "external":
            assert balances.get(account.account_id, 0) == account.balance
    ((newest,),) = sql(path, "SELECT max(posted_at) FROM posting")
    assert now - 2 * DAY < datetime.fromisoformat(newest) <= now


def test_the_shipped_data_has_enough_history_to_turn_a_page() -> None:
    history = read_demo_data(DATA).history
    assert sum(line.account_id == EVERYDAY and line.days_ago <= 30 for line in history) > 50


CUSTOMERS = "- {customer_id: C1, name: One}\n- {customer_id: C2, name: Two}\n"
ACCOUNTS = """
- {account_id: a1, customer_id: C1, account_name: A, account_type: checking, currency: USD,
   balance: "10.00"}
- {account_id: a2, customer_id: C1, account_name: B, account_type: savings, currency: EUR}
- {account_id: a3, customer_id: C2, account_name: C, account_type: savings, currency: USD}
- {account_id: a4, customer_id: C1, account_name: D, account_type: external, currency: USD,
   account_holder: Somebody}
"""
HISTORY = """
- {account_id: a1, days_ago: 1, at: "09:00", amount: "-4.00", description: Out,
   counter_account_id: a4}
- {account_id: a1, days_ago: 2, at: "09:00", amount: "6.00", description: In}
"""


def write(folder: Path, *, customers: str, accounts: str, history: str) -> Path:
    (folder / "customers.yaml").write_text(customers)
    (folder / "accounts.yaml").write_text(accounts)
    (folder / "history.yaml").write_text(history)
    return folder


@pytest.mark.parametrize(
    ("part", "instead", "says"),
    [
        ("customer_id: C2, name", "customer_id: C1, name", "customers.yaml, entry 2, customer_id"),
        ("account_id: a2,", "account_id: a1,", "accounts.yaml, entry 2, account_id: a1 is there"),
        ("account_id: a2,", 'account_id: "a 2",', "accounts.yaml, entry 2, account_id"),
        ("customer_id: C2, acc", "customer_id: C9, acc", "accounts.yaml, entry 3, customer_id"),
        ('"10.00"', "10.00", "accounts.yaml, entry 1, balance: Value error, an amount is written"),
        ('"10.00"', '"1.00"', "accounts.yaml, entry 1, balance: is too small"),
        ("account_holder: Somebody", "", "accounts.yaml, entry 4, account_type"),
        ("account_holder: Somebody", 'account_holder: S, balance: "1"', "entry 4, account_type"),
        ("account_id: a1, days_ago: 2", "account_id: a9, days_ago: 2", "history.yaml, entry 2, ac"),
        ('"09:00", amount: "6', '"9 am", amount: "6', "history.yaml, entry 2, at"),
        ('"6.00"', '"0.00"', "history.yaml, entry 2, amount: is zero"),
        ("counter_account_id: a4", "counter_account_id: a1", "history.yaml, entry 1, counter"),
        ("counter_account_id: a4", "counter_account_id: a2", "another currency"),
        ("counter_account_id: a4", "counter_account_id: a3", "not another account of the same"),
        ("- {customer_id: C1, name: One}", "- {customer_id: [", "customers.yaml is not YAML near"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, part: str, instead: str, says: str) -> None:
    files = {"customers": CUSTOMERS, "accounts": ACCOUNTS, "history": HISTORY}
    assert sum(part in text for text in files.values()) == 1
    folder = write(tmp_path, **{n: text.replace(part, instead, 1) for n, text in files.items()})
    with pytest.raises(DemoDataError) as mistake:
        read_demo_data(folder)
    assert says in str(mistake.value)
    assert "\n" not in str(mistake.value)
