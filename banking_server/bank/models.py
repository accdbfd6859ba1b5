"""The records, and the tables that keep them, on SQLite and on PostgreSQL.

Money is integer minor units, time is UTC, and every closed set has a CHECK. The ledger is double
entry: a `Posting` has two `Entry` rows, a debit (negative) and a credit (positive), that sum to
zero. Each account keeps its totals, and each entry the totals after it, so balances and statements
need no summing; `consistency_check.find_faults` proves them against the sums.

A record is a plain object, which rules receive and `Transaction` reads and writes. `TABLES` has the
table of each kind.
"""

import hashlib
import re
import secrets
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable, SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import Field, SQLModel
from sqlmodel.main import get_column_from_field

AccountType = Literal["checking", "savings", "retirement", "deposit", "external", "equity"]
"""`external`: a payee's account at another bank. `equity`: this bank's own."""
PostingKind = Literal["opening", "history", "transfer"]
Side = Literal["debit", "credit"]
TransferStatus = Literal["pending", "scheduled", "posted", "voided", "expired", "failed"]
ApprovalState = Literal["none", "required", "requested", "granted", "refused"]
"""Whether a manager has approved a transfer; `none`: it needs no approval."""
HandoffChoice = Literal["realtime", "callback"]
"""Speak to an agent now, or be called back."""
HandoffStatus = Literal["open", "claimed"]
ApprovalStatus = Literal["requested", "granted", "refused"]

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_id(value: str) -> bool:
    """Whether a text has the form of an id; no record has any other id."""
    return _ID.fullmatch(value) is not None


def new_id(prefix: str) -> str:
    """Return a fresh id that cannot be guessed, like `tr_5b7c0f3a9d1e2468`."""
    return f"{prefix}_{secrets.token_hex(8)}"


class UtcTimestamp(TypeDecorator[datetime]):
    """An aware time, in UTC.

    SQLite keeps it as `2026-01-31T09:30:00.000000Z`, which sorts as text; PostgreSQL has a type.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type of the column in this database."""
        is_native = dialect.name == "postgresql"
        return dialect.type_descriptor(DateTime(timezone=True) if is_native else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | datetime | None:
        """Write the time in UTC; a naive one is a bug."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time must be aware")
        return value if dialect.name == "postgresql" else _write_time(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read the time back, aware and in UTC."""
        if value is None:
            return None
        return (
            value.astimezone(UTC) if dialect.name == "postgresql" else datetime.fromisoformat(value)
        )


@lru_cache(maxsize=1024)
def _write_time(value: datetime) -> str:
    """Return a time as SQLite keeps it. One call stores its time about ten times."""
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds')}Z"


_INTEGER = BigInteger().with_variant(Integer(), "sqlite")
"""For amounts of money, and for numbers that the database assigns."""
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Text in the order of its code points, as on SQLite, whatever the server's language."""


def _one_of(column: str, values: Any) -> CheckConstraint:
    allowed = ", ".join(f"'{value}'" for value in get_args(values))
    return CheckConstraint(f"{column} IN ({allowed})", name=f"{column}_is_known")


def _on_sqlite(condition: str, name: str) -> CheckConstraint:
    """Reject what SQLite's loose typing would let in, and a column's type rules out elsewhere."""
    return CheckConstraint(condition, name=name).ddl_if(dialect="sqlite")


TABLES: Final[dict[type[SQLModel], Table]] = {}
"""The table of each kind of record, in an order in which none refers to a later one."""


def _table(record: type[SQLModel], name: str, *constraints: SchemaItem, **options: Any) -> None:
    """Make the table for records of this kind: a column for each field.

    It does what `class …(SQLModel, table=True)` does, without a mapper: records never belong to an
    ORM session, and mapped records would carry the mapper's state.
    """
    columns = []
    for field, declared in record.model_fields.items():
        column = get_column_from_field(declared)
        column.name = column.key = field
        columns.append(column)
    TABLES[record] = Table(name, SQLModel.metadata, *columns, *constraints, **options)


class Customer(SQLModel):
    """A customer of the bank. A token's subject is a `customer_id`."""

    customer_id: str = Field(primary_key=True, sa_type=_TEXT)
    name: str = Field(sa_type=_TEXT)


_table(Customer, "customer")


class Account(SQLModel):
    """An account, or a payee's account elsewhere that a customer sends money to.

    `customer_id` is the customer who lists it; None is the bank itself. `account_holder` names
    the holder of an external account. `is_locked` stops debits, not credits.
    """

    account_id: str = Field(primary_key=True, sa_type=_TEXT)
    customer_id: str | None = Field(
        default=None, foreign_key="customer.customer_id", index=True, sa_type=_TEXT
    )
    account_name: str = Field(sa_type=_TEXT)
    account_type: AccountType = Field(sa_type=_TEXT)
    can_transfer_from: bool = False
    can_transfer_to: bool = False
    is_locked: bool = False
    account_holder: str | None = Field(default=None, sa_type=_TEXT)
    currency: str = Field(sa_type=_TEXT)
    debits_posted_minor: int = Field(default=0, sa_type=_INTEGER)
    """The sum of all debits ever, as a positive number."""
    credits_posted_minor: int = Field(default=0, sa_type=_INTEGER)
    """The sum of all credits ever."""
    debits_pending_minor: int = Field(default=0, sa_type=_INTEGER)
    """The sum of the transfers out of it that are stored as pending, expired ones included."""
    last_posted_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)
    """When its last entry was posted. The next one is never dated before it."""


_table(
    Account,
    "account",
    UniqueConstraint("account_id", "currency"),
    _one_of("account_type", AccountType),
    CheckConstraint(
        "length(currency) = 3 AND currency = upper(currency)", name="currency_is_a_code"
    ),
    CheckConstraint(
        "(account_type = 'equity') = (customer_id IS NULL)", name="equity_is_the_banks_own"
    ),
    _on_sqlite(
        "can_transfer_from IN (0, 1) AND can_transfer_to IN (0, 1) AND is_locked IN (0, 1)",
        "flags_are_flags",
    ),
    CheckConstraint(
        "debits_posted_minor >= 0 AND credits_posted_minor >= 0 AND debits_pending_minor >= 0",
        name="totals_are_not_negative",
    ),
    CheckConstraint(
        "account_type = 'equity' OR credits_posted_minor >= debits_posted_minor",
        name="nobody_owes_the_bank",
    ),
)


class Transfer(SQLModel):
    """A transfer through its whole life.

    `pending` (funds reserved until `expires_at`) becomes `posted`, `scheduled`, `voided`
    or `expired`; `scheduled` (nothing reserved) becomes `posted`, `voided` or `failed`.
    `reason` says why it was voided or failed. `wrong_codes` counts wrong confirmation codes,
    and `declines` how often the customer was asked to confirm but did not.
    """

    transfer_id: str = Field(primary_key=True, sa_type=_TEXT)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=_TEXT)
    from_account_id: str = Field(sa_type=_TEXT)
    to_account_id: str = Field(sa_type=_TEXT)
    amount_minor: int = Field(sa_type=_INTEGER)
    currency: str = Field(sa_type=_TEXT)
    scheduled_date: date | None = None
    memo: str | None = Field(default=None, sa_type=_TEXT)
    status: TransferStatus = Field(default="pending", sa_type=_TEXT)
    reason: str | None = Field(default=None, sa_type=_TEXT)
    approval: ApprovalState = Field(default="none", sa_type=_TEXT)
    wrong_codes: int = 0
    created_at: datetime = Field(sa_type=UtcTimestamp)
    expires_at: datetime = Field(sa_type=UtcTimestamp)
    posted_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)
    declines: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})


_table(
    Transfer,
    "transfer",
    ForeignKeyConstraint(
        ["from_account_id", "currency"], ["account.account_id", "account.currency"]
    ),
    ForeignKeyConstraint(["to_account_id", "currency"], ["account.account_id", "account.currency"]),
    CheckConstraint("amount_minor > 0", name="amount_is_positive"),
    _on_sqlite("typeof(amount_minor) = 'integer'", "amount_is_whole"),
    CheckConstraint("from_account_id <> to_account_id", name="accounts_differ"),
    _one_of("status", TransferStatus),
    _one_of("approval", ApprovalState),
    CheckConstraint("(status = 'posted') = (posted_at IS NOT NULL)", name="posted_has_its_time"),
    CheckConstraint("wrong_codes >= 0", name="wrong_codes_are_counted"),
    CheckConstraint("declines >= 0", name="declines_are_counted"),
)


class Posting(SQLModel):
    """One event in the ledger; append-only. `transfer_id` is unique: a transfer posts once."""

    posting_id: int = Field(default=None, primary_key=True, sa_type=_INTEGER)
    """Assigned by the database, in the order of posting."""
    kind: PostingKind = Field(sa_type=_TEXT)
    description: str = Field(sa_type=_TEXT)
    posted_at: datetime = Field(sa_type=UtcTimestamp)
    transfer_id: str | None = Field(
        default=None, foreign_key="transfer.transfer_id", unique=True, sa_type=_TEXT
    )


_table(
    Posting,
    "posting",
    _one_of("kind", PostingKind),
    CheckConstraint("(kind = 'transfer') = (transfer_id IS NOT NULL)", name="transfers_are_named"),
    sqlite_autoincrement=True,
)


class Entry(SQLModel):
    """One side of a posting; append-only. `amount_minor`: debit below zero, credit above.

    `posted_at` is the posting's, repeated here for the index. An account's entries have an order:
    by `posted_at`, then `posting_id`. The two totals are the account's after this entry.
    """

    entry_id: int = Field(default=None, primary_key=True, sa_type=_INTEGER)
    posting_id: int = Field(foreign_key="posting.posting_id", sa_type=_INTEGER)
    side: Side = Field(sa_type=_TEXT)
    account_id: str = Field(sa_type=_TEXT)
    amount_minor: int = Field(sa_type=_INTEGER)
    currency: str = Field(sa_type=_TEXT)
    posted_at: datetime = Field(sa_type=UtcTimestamp)
    debits_after_minor: int = Field(sa_type=_INTEGER)
    credits_after_minor: int = Field(sa_type=_INTEGER)


_table(
    Entry,
    "entry",
    ForeignKeyConstraint(["account_id", "currency"], ["account.account_id", "account.currency"]),
    UniqueConstraint("posting_id", "side"),
    UniqueConstraint("posting_id", "account_id"),
    _one_of("side", Side),
    CheckConstraint(
        "amount_minor <> 0 AND (side = 'debit') = (amount_minor < 0)", name="sign_fits_side"
    ),
    _on_sqlite("typeof(amount_minor) = 'integer'", "amount_is_whole"),
    CheckConstraint(
        "debits_after_minor >= 0 AND credits_after_minor >= 0", name="totals_are_not_negative"
    ),
    Index("entry_of_account", "account_id", "posted_at", "posting_id"),
)


class Handoff(SQLModel):
    """A customer waiting for a human agent; one open record per customer and matter."""

    handoff_id: str = Field(primary_key=True, sa_type=_TEXT)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=_TEXT)
    reason: str = Field(sa_type=_TEXT)
    choice: HandoffChoice | None = Field(default=None, sa_type=_TEXT)
    status: HandoffStatus = Field(default="open", sa_type=_TEXT)
    created_at: datetime = Field(sa_type=UtcTimestamp)
    claimed_by: str | None = Field(default=None, sa_type=_TEXT)
    claimed_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)


_table(
    Handoff,
    "handoff",
    _one_of("choice", HandoffChoice),
    _one_of("status", HandoffStatus),
    CheckConstraint(
        "(status = 'claimed') = (claimed_by IS NOT NULL) "
        "AND (status = 'claimed') = (claimed_at IS NOT NULL)",
        name="claimed_has_its_agent",
    ),
)


class Approval(SQLModel):
    """A manager's decision on one transfer, asked for or taken."""

    approval_id: str = Field(primary_key=True, sa_type=_TEXT)
    transfer_id: str = Field(foreign_key="transfer.transfer_id", unique=True, sa_type=_TEXT)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=_TEXT)
    reason: str = Field(sa_type=_TEXT)
    status: ApprovalStatus = Field(default="requested", sa_type=_TEXT)
    created_at: datetime = Field(sa_type=UtcTimestamp)
    decided_by: str | None = Field(default=None, sa_type=_TEXT)
    decided_at: datetime | None = Field(default=None, sa_type=UtcTimestamp)


_table(
    Approval,
    "approval",
    _one_of("status", ApprovalStatus),
    CheckConstraint(
        "(status = 'requested') = (decided_by IS NULL) "
        "AND (status = 'requested') = (decided_at IS NULL)",
        name="decided_has_its_manager",
    ),
)


class ComplianceReport(SQLModel):
    """A posted transfer reported under one compliance rule; once per rule."""

    report_id: str = Field(primary_key=True, sa_type=_TEXT)
    transfer_id: str = Field(foreign_key="transfer.transfer_id", sa_type=_TEXT)
    rule: str = Field(sa_type=_TEXT)
    customer_id: str = Field(foreign_key="customer.customer_id", sa_type=_TEXT)
    created_at: datetime = Field(sa_type=UtcTimestamp)


_table(ComplianceReport, "compliance_report", UniqueConstraint("transfer_id", "rule"))


class AuditEvent(SQLModel):
    """One call of a tool, or one act at a desk; append-only.

    `subject` is one of our own ids or None. The `chain_*` columns are the client's claims about
    the call's tool chain; no decision depends on them. `customer_id` is not a foreign key: calls
    of unknown customers are recorded too.
    """

    event_id: int = Field(default=None, primary_key=True, sa_type=_INTEGER)
    at: datetime = Field(sa_type=UtcTimestamp)
    customer_id: str = Field(index=True, sa_type=_TEXT)
    tool: str = Field(sa_type=_TEXT)
    outcome: str = Field(sa_type=_TEXT)
    subject: str | None = Field(default=None, sa_type=_TEXT)
    chain_id: str | None = Field(default=None, sa_type=_TEXT)
    chain_level: int | None = None
    chain_previous_tool: str | None = Field(default=None, sa_type=_TEXT)


_table(AuditEvent, "audit_event", sqlite_autoincrement=True)


_APPEND_ONLY = ("posting", "entry", "audit_event")
"""Tables whose rows are written once and never change."""
_TRIGGERS = {
    "sqlite": [
        """
CREATE TRIGGER {table}_is_append_only_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
""",
        """
CREATE TRIGGER {table}_is_append_only_delete BEFORE DELETE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
""",
    ],
    "postgresql": [
        """
CREATE TRIGGER {table}_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
"""
    ],
}
_BALANCED = {
    "sqlite": """
CREATE TRIGGER entry_balances BEFORE INSERT ON entry
WHEN NEW.side = 'credit' AND NOT EXISTS (
    SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
    AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
BEGIN SELECT RAISE(ABORT, 'a credit needs its debit first'); END
""",
    "postgresql": """
CREATE TRIGGER entry_balances BEFORE INSERT ON entry
FOR EACH ROW WHEN (NEW.side = 'credit') EXECUTE FUNCTION refuse_credit_alone()
""",
}
_FUNCTIONS: dict[str, list[str]] = {
    "sqlite": [],
    "postgresql": [
        """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only',
        ERRCODE = 'integrity_constraint_violation';
END $$
""",
        """
CREATE FUNCTION refuse_credit_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM entry WHERE posting_id = NEW.posting_id AND side = 'debit'
        AND amount_minor = -NEW.amount_minor AND currency = NEW.currency)
    THEN
        RAISE EXCEPTION USING MESSAGE = 'a credit needs its debit first',
            ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$
""",
    ],
}


WRONG_CODE_OUTCOMES: Final = "outcome IN ('wrong_code', 'voided_for_codes')"
"""The condition on audit events about a wrong confirmation code."""
_INDEXES_OF_SOME = (
    "CREATE INDEX transfer_reserves ON transfer (from_account_id, expires_at)"
    " WHERE status = 'pending'",
    "CREATE INDEX transfer_of_customer ON transfer (customer_id, expires_at)"
    " WHERE status = 'pending'",
    "CREATE INDEX transfer_expires ON transfer (expires_at) WHERE status = 'pending'",
    "CREATE INDEX transfer_falls_due ON transfer (scheduled_date) WHERE status = 'scheduled'",
    "CREATE UNIQUE INDEX one_open_handoff_per_reason ON handoff (customer_id, reason)"
    " WHERE status = 'open'",
    "CREATE INDEX audit_event_wrong_codes ON audit_event (customer_id, at)"
    f" WHERE {WRONG_CODE_OUTCOMES}",
)
"""Indexes of rows that are in progress, or rare: they stay small however old the bank is.

A query can use one only if its condition has the same literals
(`transaction.has_status`). They are text because SQLAlchemy would load a whole dialect for
each `Index` with a condition.
"""


def schema(dialect: Dialect) -> list[str]:
    """Return the statements that create every table, index and trigger in an empty database."""
    database = dialect.name
    tables = SQLModel.metadata.sorted_tables
    statements = [str(CreateTable(table).compile(dialect=dialect)) for table in tables]
    statements += [
        str(CreateIndex(index).compile(dialect=dialect))
        for table in tables
        for index in sorted(table.indexes, key=lambda index: str(index.name))
    ]
    statements += [*_INDEXES_OF_SOME, *_FUNCTIONS[database]]
    for table in _APPEND_ONLY:
        statements += [trigger.format(table=table) for trigger in _TRIGGERS[database]]
    return [*statements, _BALANCED[database]]


def fingerprint(dialect: Dialect) -> int:
    """Return the 31-bit number that identifies exactly this schema in a database.

    The layout of the statements does not matter.
    """
    text = "".join("".join(schema(dialect)).split())
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
