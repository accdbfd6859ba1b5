"""The tables. Money is integer minor units, time is UTC, and every closed set has a CHECK.

The ledger is double entry: a `Posting` has two `Entry` rows, a debit (negative) and a credit
(positive), that sum to zero. A balance is the sum of an account's entries and is stored nowhere.
"""

import re
import secrets
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Connection,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

AccountType = Literal["checking", "savings", "retirement", "deposit", "external", "equity"]
"""`external`: a payee's account at another bank. `equity`: this bank's own."""
PostingKind = Literal["opening", "history", "transfer"]
Side = Literal["debit", "credit"]
TransferStatus = Literal["pending", "scheduled", "posted", "voided", "expired", "failed"]
ApprovalState = Literal["none", "required", "requested", "granted", "refused"]
"""Where a transfer stands with the manager; `none`: it needs no approval."""
HandoffChoice = Literal["realtime", "callback"]
"""Speak to an agent now, or be called back."""
HandoffStatus = Literal["open", "claimed"]
ApprovalStatus = Literal["requested", "granted", "refused"]

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_id(value: str) -> bool:
    """Whether a text has the form of an id; anything else is the id of nothing."""
    return _ID.fullmatch(value) is not None


def new_id(prefix: str) -> str:
    """Return a fresh id that cannot be guessed, like `tr_5b7c0f3a9d1e2468`."""
    return f"{prefix}_{secrets.token_hex(8)}"


class UtcTimestamp(TypeDecorator[datetime]):
    """An aware time, stored as `2026-01-31T09:30:00.000000Z`: UTC, and sorted as text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Write the time in UTC; a naive one is a mistake in the program."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time must be aware")
        utc = value.astimezone(UTC).replace(tzinfo=None)
        return f"{utc.isoformat(timespec='microseconds')}Z"

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read the time back, aware and in UTC."""
        return None if value is None else datetime.fromisoformat(value)


_MINOR = BigInteger().with_variant(Integer(), "sqlite")
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


def _one_of(column: str, values: Any) -> CheckConstraint:
    allowed = ", ".join(f"'{value}'" for value in get_args(values))
    return CheckConstraint(f"{column} IN ({allowed})", name=f"{column}_is_known")


_AMOUNT_IS_POSITIVE = "typeof(amount_minor) = 'integer' AND amount_minor > 0"


class Customer(SQLModel, table=True):
    """Somebody who banks here. `customer_id` is what a token's subject names."""

    customer_id: str = Field(primary_key=True, sa_type=Text)
    name: str = Field(sa_type=Text)


class Account(SQLModel, table=True):
    """An account, or a payee's account elsewhere that a customer sends money to.

    `customer_id` is whose list it stands in; None is the bank itself. `account_holder` names
    who holds an external account. `is_locked` stops debits, not credits.
    """

    __table_args__ = (
        UniqueConstraint("account_id", "currency"),
        _one_of("account_type", AccountType),
        CheckConstraint("currency GLOB '[A-Z][A-Z][A-Z]'", name="currency_is_a_code"),
        CheckConstraint(
            "(account_type = 'equity') = (customer_id IS NULL)", name="equity_is_the_banks_own"
        ),
        CheckConstraint(
            "can_transfer_from IN (0, 1) AND can_transfer_to IN (0, 1) AND is_locked IN (0, 1)",
            name="flags_are_flags",
        ),
    )

    account_id: str = Field(primary_key=True, sa_type=Text)
    customer_id: str | None = Field(
        default=None, foreign_key="customer.customer_id", index=True, sa_type=Text
    )
    account_name: str = Field(sa_type=Text)
    account_type: AccountType = Field(sa_type=Text)
    can_transfer_from: bool = False
    can_transfer_to: bool = False
    is_locked: bool = False
    account_holder: str | None = Field(default=None, sa_type=Text)
    currency: str = Field(sa_type=Text)


class Transfer(SQLModel, table=True):
    """A transfer through its whole life.

    `pending` (funds reserved until `expires_at`) becomes `posted`, `scheduled`, `voided`
    or `expired`; `scheduled` (nothing reserved) becomes `posted`, `voided` or `failed`.
    `reason` says why it was voided or failed. `wrong_codes` counts wrong confirmation codes.
    """

    __table_args__ = (
        ForeignKeyConstraint(
            ["from_account_id", "currency"], ["account.account_id", "account.currency"]
        ),
        ForeignKeyConstraint(
            ["to_account_id", "currency"], ["account.account_id", "account.currency"]
        ),
        CheckConstraint(_AMOUNT_IS_POSITIVE, name="amount_is_positive"),
        CheckConstraint("from_account_id <> to_account_id", name="accounts_differ"),
        _one_of("status", TransferStatus),
        _one_of("approval", ApprovalState),
        CheckConstraint(
            "(status = 'posted') = (posted_at IS NOT NULL)", name="posted_has_its_time"
        ),
        CheckConstraint("wrong_codes >= 0", name="wrong_codes_are_counted"),
        Index("transfer_reserves", "from_account_id", "status", "expires_at"),
        Index("transfer_falls_due", "status", "scheduled_date"),
    )

    transfer_id: str = Field(primary_key=True, sa_type=Text)
    customer_id: str = Field(foreign_key="customer.customer_id", index=True, sa_type=Text)
    from_account_id: str = Field(sa_type=Text)
    to_account_id: str = Field(sa_type=Text)
    amount_minor: int = Field(sa_type=_MINOR)
    currency: str = Field(sa_type=Text)
    scheduled_date: date | None = None
    memo: str | None = Field(default=None, sa_type=Text)
    status: TransferStatus = Field(default="pending", sa_type=Text)
    reason: str | None = Field(default=None, sa_type=Text)
    approval: ApprovalState = Field(default="none", sa_type=Text)
    wrong_codes: int = 0
    created_at: datetime = Field(sa_type=UtcTimestamp)
    expires_at: datetime = Field(sa_type=UtcTimestamp)
    posted_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)


class Posting(SQLModel, table=True):
    """One event in the ledger; append-only. `transfer_id` is unique: a transfer posts once."""

    __table_args__ = (
        _one_of("kind", PostingKind),
        CheckConstraint(
            "(kind = 'transfer') = (transfer_id IS NOT NULL)", name="transfers_are_named"
        ),
        {"sqlite_autoincrement": True},
    )

    posting_id: int = Field(default=None, primary_key=True, sa_type=_ROW_ID)
    """Given by the database, in the order of posting."""
    kind: PostingKind = Field(sa_type=Text)
    description: str = Field(sa_type=Text)
    posted_at: datetime = Field(sa_type=UtcTimestamp)
    transfer_id: str | None = Field(
        default=None, foreign_key="transfer.transfer_id", unique=True, sa_type=Text
    )


class Entry(SQLModel, table=True):
    """One side of a posting; append-only. `amount_minor`: debit below zero, credit above."""

    __table_args__ = (
        ForeignKeyConstraint(
            ["account_id", "currency"], ["account.account_id", "account.currency"]
        ),
        UniqueConstraint("posting_id", "side"),
        UniqueConstraint("posting_id", "account_id"),
        _one_of("side", Side),
        CheckConstraint(
            "typeof(amount_minor) = 'integer' AND amount_minor <> 0 "
            "AND (side = 'debit') = (amount_minor < 0)",
            name="sign_fits_side",
        ),
        Index("entry_of_account", "account_id", "amount_minor"),
    )

    entry_id: int = Field(default=None, primary_key=True, sa_type=_ROW_ID)
    posting_id: int = Field(foreign_key="posting.posting_id", sa_type=_ROW_ID)
    side: Side = Field(sa_type=Text)
    account_id: str = Field(sa_type=Text)
    amount_minor: int = Field(sa_type=_MINOR)
    currency: str = Field(sa_type=Text)


class Handoff(SQLModel, table=True):
    """A customer waiting for a human agent; one open record per customer and reason."""

    __table_args__ = (
        _one_of("choice", HandoffChoice),
        _one_of("status", HandoffStatus),
        CheckConstraint(
            "(status = 'claimed') = (claimed_by IS NOT NULL) "
            "AND (status = 'claimed') = (claimed_at IS NOT NULL)",
            name="claimed_has_its_agent",
        ),
        Index(
            "one_open_handoff_per_reason",
            "customer_id",
            "reason",
            unique=True,
            sqlite_where=text("status = 'open'"),
        ),
    )

    handoff_id: str = Field(primary_key=True, sa_type=Text)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=Text)
    reason: str = Field(sa_type=Text)
    choice: HandoffChoice | None = Field(default=None, sa_type=Text)
    status: HandoffStatus = Field(default="open", sa_type=Text)
    created_at: datetime = Field(sa_type=UtcTimestamp)
    claimed_by: str | None = Field(default=None, sa_type=Text)
    claimed_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)


class Approval(SQLModel, table=True):
    """A manager's decision on one transfer, asked for or taken."""

    __table_args__ = (
        _one_of("status", ApprovalStatus),
        CheckConstraint(
            "(status = 'requested') = (decided_by IS NULL) "
            "AND (status = 'requested') = (decided_at IS NULL)",
            name="decided_has_its_manager",
        ),
    )

    approval_id: str = Field(primary_key=True, sa_type=Text)
    transfer_id: str = Field(foreign_key="transfer.transfer_id", unique=True, sa_type=Text)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=Text)
    reason: str = Field(sa_type=Text)
    status: ApprovalStatus = Field(default="requested", sa_type=Text)
    created_at: datetime = Field(sa_type=UtcTimestamp)
    decided_by: str | None = Field(default=None, sa_type=Text)
    decided_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)


class ComplianceReport(SQLModel, table=True):
    """A posted transfer reported under one compliance rule; once per rule."""

    __tablename__ = "compliance_report"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (UniqueConstraint("transfer_id", "rule"),)

    report_id: str = Field(primary_key=True, sa_type=Text)
    transfer_id: str = Field(foreign_key="transfer.transfer_id", sa_type=Text)
    rule: str = Field(sa_type=Text)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=Text)
    created_at: datetime = Field(sa_type=UtcTimestamp)


class AuditEvent(SQLModel, table=True):
    """One call of a tool, or one act at a desk; append-only.

    `subject` is one of our own ids or None. The `chain_*` columns are what the client said
    about the tool chain the call belonged to; nothing is decided on them. `customer_id` is no
    foreign key: a call is recorded even where the customer is not one of ours.
    """

    __tablename__ = "audit_event"  # pyright: ignore[reportAssignmentType]
    __table_args__ = ({"sqlite_autoincrement": True},)

    event_id: int = Field(default=None, primary_key=True, sa_type=_ROW_ID)
    at: datetime = Field(sa_type=UtcTimestamp)
    customer_id: str = Field(index=True, sa_type=Text)
    tool: str = Field(sa_type=Text)
    outcome: str = Field(sa_type=Text)
    subject: str | None = Field(default=None, sa_type=Text)
    chain_id: str | None = Field(default=None, sa_type=Text)
    chain_level: int | None = None
    chain_previous_tool: str | None = Field(default=None, sa_type=Text)


_APPEND_ONLY = """
CREATE TRIGGER {table}_is_append_only_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""
_BALANCED = """
CREATE TRIGGER entry_balances BEFORE INSERT ON entry
WHEN NEW.side = 'credit' AND NOT EXISTS (
    SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
    AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
BEGIN SELECT RAISE(ABORT, 'a credit needs its debit first'); END
"""


def create_schema(connection: Connection) -> None:
    """Create every table and trigger in an empty database, inside the caller's transaction."""
    SQLModel.metadata.create_all(connection)
    for table in ("posting", "entry", "audit_event"):
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(_APPEND_ONLY.format(table=table, verb=verb))
    connection.exec_driver_sql(_BALANCED)
