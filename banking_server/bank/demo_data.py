"""The demo data: YAML files, described in `data/README.md`, that fill a new database."""

from collections import defaultdict
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from banking_server.bank.ledger import add_posting
from banking_server.bank.models import Account, Customer
from banking_server.bank.money import InvalidAmount, to_minor
from banking_server.bank.transaction import Transaction
from tool_chaining.text import one_line


class DemoDataError(Exception):
    """A mistake in the demo data; the message names the file, and the entry's number and field."""


def _read_amount(value: object) -> int:
    """Read a quoted decimal, of either sign or zero, as minor units."""
    if not isinstance(value, str):
        raise ValueError('an amount is written in quotes, like "5250.75"')
    try:
        amount = Decimal(value)
        if amount.is_zero():
            return 0
        return to_minor(abs(amount)) * (-1 if amount < 0 else 1)
    except InvalidAmount as error:
        raise ValueError(str(error)) from error
    except InvalidOperation:
        raise ValueError(f'"{value}" is not an amount like "5250.75"') from None


def _read_time(value: object) -> time:
    if not isinstance(value, str):
        raise ValueError('a time is written in quotes, like "09:30"')
    return time.fromisoformat(value)


class _Item(BaseModel):
    # Strict: an unquoted word or number that YAML converts is a mistake, not intended.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


_Amount = Annotated[int, BeforeValidator(_read_amount)]
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Name = Annotated[str, Field(min_length=1, max_length=100)]


class CustomerItem(_Item):
    """An entry of `customers.yaml`."""

    customer_id: _Id
    name: _Name


class AccountItem(_Item):
    """An entry of `accounts.yaml`. `balance` is in minor units, history included."""

    account_id: _Id
    customer_id: _Id
    account_name: _Name
    account_type: Literal["checking", "savings", "retirement", "deposit", "external"]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    can_transfer_from: bool = False
    can_transfer_to: bool = False
    is_locked: bool = False
    account_holder: _Name | None = None
    balance: _Amount = 0


class HistoryItem(_Item):
    """An entry of `history.yaml`. `amount` is minor units, as `account_id` sees it."""

    account_id: _Id
    days_ago: Annotated[int, Field(ge=1, le=3650)]
    at: Annotated[time, BeforeValidator(_read_time)]
    description: _Name
    amount: _Amount
    counter_account_id: _Id | None = None


class DemoData(_Item):
    """The three files."""

    customers: list[CustomerItem]
    accounts: list[AccountItem]
    history: list[HistoryItem]

    @property
    def opening(self) -> dict[str, int]:
        """The balance of each account, except payees', before its history, in minor units."""
        effects: dict[str, int] = defaultdict(int)
        for line in self.history:
            effects[line.account_id] += line.amount
            if line.counter_account_id:
                effects[line.counter_account_id] -= line.amount
        return {
            account.account_id: account.balance - effects[account.account_id]
            for account in self.accounts
            if account.account_type != "external"
        }


def read_demo_data(folder: Path) -> DemoData:
    """Read and check the files in `folder`; raises `DemoDataError`."""
    files = {}
    for name in DemoData.model_fields:
        path = folder / f"{name}.yaml"
        try:
            files[name] = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise DemoDataError(f"{path} cannot be read: {one_line(str(error), 200)}") from error
    try:
        data = DemoData.model_validate(files)
    except ValidationError as error:
        first = error.errors()[0]
        file, *where = first["loc"]
        place = "".join(
            f", entry {part + 1}" if isinstance(part, int) else f", {part}" for part in where
        )
        raise DemoDataError(f"{file}.yaml{place}: {first['msg']}.") from error
    known = {None, *(account.account_id for account in data.accounts)}
    for number, line in enumerate(data.history, start=1):
        if not {line.account_id, line.counter_account_id} <= known:
            raise DemoDataError(f"history.yaml, entry {number}: accounts.yaml has no such account.")
    return data


def add_demo_data(tx: Transaction, data: DemoData, now: datetime) -> None:
    """Write the data in the caller's transaction; the history ends the day before `now`."""
    for customer in data.customers:
        tx.add(Customer(**customer.model_dump()))
    accounts: dict[str, Account] = {}
    for item in data.accounts:
        account = accounts[item.account_id] = Account(**item.model_dump(exclude={"balance"}))
        tx.add(account)
    # Money without a counterparty in the files goes through the bank's own account per currency.
    equity = {
        currency: Account(
            account_id=f"acc_equity_{currency.lower()}",
            account_name=f"The bank's own {currency}",
            account_type="equity",
            currency=currency,
        )
        for currency in sorted({item.currency for item in data.accounts})
    }
    for account in equity.values():
        tx.add(account)

    today = now.astimezone(UTC).date()
    first_day = today - timedelta(days=1 + max((line.days_ago for line in data.history), default=0))
    for account_id, amount_minor in data.opening.items():
        if amount_minor:
            account = accounts[account_id]
            add_posting(
                tx,
                kind="opening",
                description="Opening balance",
                posted_at=datetime.combine(first_day, time(), UTC),
                debit=equity[account.currency],
                credit=account,
                amount_minor=amount_minor,
            )
    oldest_first = sorted(data.history, key=lambda line: (-line.days_ago, line.at))
    for line in oldest_first:
        account = accounts[line.account_id]
        other = accounts.get(line.counter_account_id or "", equity[account.currency])
        debit, credit = (other, account) if line.amount > 0 else (account, other)
        add_posting(
            tx,
            kind="history",
            description=line.description,
            posted_at=datetime.combine(today - timedelta(days=line.days_ago), line.at, UTC),
            debit=debit,
            credit=credit,
            amount_minor=abs(line.amount),
        )
