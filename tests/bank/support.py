"""A bank to test against: its clock, its callers, and a way past it to the file."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from banking_server.bank import opening
from banking_server.bank.approvals import decide_approval, request_approval
from banking_server.bank.audit import Call
from banking_server.bank.consistency_check import faults_in
from banking_server.bank.location import Location
from banking_server.bank.postgresql import DIALECT as POSTGRESQL
from banking_server.bank.rules import Code, NoConsent, Rules, Yes
from banking_server.bank.sqlite import DIALECT
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers.confirm import cancel_transfer, confirm_transfer, settle
from banking_server.bank.transfers.outcomes import OverThreshold, Posted, Prepared
from banking_server.bank.transfers.prepare import Wish, prepare_transfer
from banking_server.server.open_bank import DEMO_DATA

from ..kit import postgres
from ..kit.words import EVERYDAY, PAYEE, SAVINGS

CODE_KEY = b"a key for tests"
NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday morning: the branch is open."""
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

FOREIGN = "acc_savings_002"
"""Somebody else's account."""


async def open_bank(
    path: Location,
    *,
    rules: Rules | None = None,
    data: Path = DEMO_DATA,
    now: datetime = NOW,
    may_create: bool = True,
) -> Bank:
    return await opening.open_bank(
        path,
        rules=rules or Rules(),
        code_key=CODE_KEY,
        demo_data=data,
        now=now,
        may_create=may_create,
    )


def call(tool: str = "a_tool", *, at: datetime = NOW, customer: str = "CUST001") -> Call:
    return Call(customer_id=customer, tool=tool, at=at)


async def prepare(
    bank: Bank,
    amount: str = "100.00",
    *,
    source: str = EVERYDAY,
    target: str | None = SAVINGS,
    on: str | None = None,
    memo: str | None = None,
    expired: str | None = None,
    at: datetime = NOW,
    customer: str = "CUST001",
) -> Any:
    return await prepare_transfer(
        bank,
        call("prepare", at=at, customer=customer),
        Wish(Decimal(amount), on, memo, source, target),
        expired_transfer_id=expired,
    )


async def prepared(bank: Bank, amount: str = "100.00", **more: Any) -> Prepared | OverThreshold:
    outcome = await prepare(bank, amount, **more)
    assert isinstance(outcome, Prepared | OverThreshold), outcome
    return outcome


async def confirm(
    bank: Bank,
    transfer_id: str,
    *,
    agreed: bool = True,
    code: str | None = None,
    at: datetime = NOW,
    customer: str = "CUST001",
) -> Any:
    return await confirm_transfer(
        bank,
        call("confirm", at=at, customer=customer),
        transfer_id,
        Yes(0, code) if agreed else NoConsent() if code is None else Code(code),
    )


async def posted(bank: Bank, amount: str = "100.00", **more: Any) -> Posted:
    outcome = await confirm(bank, (await prepared(bank, amount, **more)).transfer.transfer_id)
    assert isinstance(outcome, Posted), outcome
    return outcome


async def use(bank: Bank) -> None:
    """Let there be something of everything."""
    await posted(bank, "3000.00", source=SAVINGS, target=PAYEE, memo="reported")
    await posted(bank, "1.00", memo="plain")
    await prepared(bank, "2.00", memo="waits")
    await prepared(bank, "2.50", memo="expires", at=NOW - timedelta(minutes=20))
    cancelled = (await prepared(bank, "3.00", memo="cancelled")).transfer.transfer_id
    await cancel_transfer(bank, call(), cancelled)
    for memo in ("granted", "asked"):
        over = await prepared(bank, "10000.01", source=SAVINGS, target=EVERYDAY, memo=memo)
        transfer_id = over.transfer.transfer_id
        asked = await request_approval(bank, call(), transfer_id, reason=memo)
        if memo == "granted":
            approval_id = asked.approval.approval_id  # type: ignore[union-attr]
            await decide_approval(bank, approval_id, granted=True, manager="Mo", now=NOW)
            await confirm(bank, transfer_id)
    for memo, amount in (("due", "4.00"), ("later", "5.00")):
        on = str((NOW + (1 if memo == "due" else 9) * DAY).date())
        await confirm(bank, (await prepared(bank, amount, on=on, memo=memo)).transfer.transfer_id)
    await settle(bank, as_of=(NOW + DAY).date(), now=NOW)


def sql(path: Location, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Do to the database what no function of the bank does; return the rows."""
    if isinstance(path, URL):
        return postgres.sql(path, statement, *values)
    with closing(sqlite3.connect(path, timeout=10)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        return connection.execute(statement, values).fetchall()


def check_books(path: Location, now: datetime) -> None:
    """Check everything that must hold of the bank at any moment."""
    assert _faults(path) == []
    assert not sql(path, _OVERSPENT, now if isinstance(path, URL) else _stored(now))
    assert not sql(path, _UNREPORTED)
    assert not sql(path, _UNRECORDED)


def _faults(path: Location) -> list[str]:
    if isinstance(path, URL):
        connection = postgres.connection_to(path)
        with connection.transaction():
            return faults_in(Transaction(connection.execute, POSTGRESQL, lock_rows=False))
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
        return faults_in(Transaction(connection.execute, DIALECT, lock_rows=False))


_OVERSPENT = """
    SELECT account_id FROM account AS a WHERE customer_id IS NOT NULL AND
        (SELECT coalesce(sum(amount_minor), 0) FROM entry WHERE account_id = a.account_id) <
        (SELECT coalesce(sum(amount_minor), 0) FROM transfer
         WHERE from_account_id = a.account_id AND status = 'pending' AND expires_at > ?)"""
_UNREPORTED = """
    SELECT transfer_id FROM transfer JOIN account ON account_id = to_account_id
    WHERE status = 'posted' AND account_type = 'external' AND amount_minor >= 300000
    AND transfer_id NOT IN (SELECT transfer_id FROM compliance_report)"""

_UNRECORDED = """
    SELECT transfer_id FROM transfer WHERE status = 'posted'
    AND transfer_id NOT IN (SELECT subject FROM audit_event WHERE outcome = 'posted')"""


def _stored(at: datetime) -> str:
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def outcomes(path: Location) -> list[tuple[Any, ...]]:
    """Return (tool, outcome, subject) of every audit event, oldest first."""
    return sql(path, "SELECT tool, outcome, subject FROM audit_event ORDER BY event_id")
