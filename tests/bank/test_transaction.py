"""Records in and out of a transaction."""

from datetime import UTC, datetime
from enum import Enum

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg

from banking_server.bank.models import TABLES, Account, AuditEvent
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, command, reading

from ..kit.words import EVERYDAY
from .support import NOW

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("model", TABLES)
def test_a_record_is_read_as_pydantic_would_make_it(model: type) -> None:
    values = {name: f"{name}'s value" for name in model.model_fields}
    made, expected = reading(model)(*values.values()), model.model_construct(**values)
    assert made == expected
    assert type(made) is model
    assert made.model_dump(warnings=False) == values
    assert made.model_fields_set == set(values)


async def test_what_is_added_and_changed_is_found(bank: Bank) -> None:
    def work(tx: Transaction) -> None:
        event = AuditEvent(at=NOW.astimezone(), customer_id="C", tool="t", outcome="o")
        tx.add(event)
        found = tx.get(AuditEvent, event.event_id)
        assert found == event
        assert found.at.tzinfo is UTC
        tx.lock("CUST001")
        account = tx.get(Account, EVERYDAY)
        tx.change(account, is_locked=True, last_posted_at=NOW)
        assert (account.is_locked, account.last_posted_at) == (True, NOW)
        assert tx.get(Account, EVERYDAY) == account
        assert tx.find(Account, "nobody's") is None

    await bank.write(work)


async def test_a_time_without_a_zone_is_a_mistake(bank: Bank) -> None:
    naive = datetime(2026, 3, 4)  # noqa: DTZ001
    event = AuditEvent.model_construct(at=naive, customer_id="C", tool="t", outcome="o")
    with pytest.raises(ValueError, match="must be aware"):
        await bank.write(lambda tx: tx.add(event))


class _Known(Enum):
    """What SQLAlchemy makes of one statement, in the words of each database."""

    SQLITE = (
        sqlite.dialect(),
        "UPDATE account SET is_locked=?, last_posted_at=? "
        "WHERE account.account_id = ? AND account.currency = ?",
        ["is_locked", "last_posted_at", "account_id", None],
        [1, "2026-03-04T10:00:00.000000Z", "a", "USD"],
    )
    POSTGRESQL = (
        psycopg.dialect(),
        "UPDATE account SET is_locked=%(is_locked)s, "
        "last_posted_at=%(last_posted_at)s::TIMESTAMP WITH TIME ZONE "
        'WHERE account.account_id = %(account_id)s::VARCHAR COLLATE "C" '
        'AND account.currency = %(currency_1)s::VARCHAR COLLATE "C"',
        ["is_locked", "last_posted_at", "account_id", None],
        {"is_locked": True, "last_posted_at": NOW, "account_id": "a", "currency_1": "USD"},
    )


@pytest.mark.parametrize("known", _Known)
def test_what_is_used_of_sqlalchemys_compiler_is_there(known: _Known) -> None:
    """`binds`, `bind_names`, `positiontup`, `required`, `effective_value`: documented nowhere."""
    dialect, text, names, parameters = known.value
    table = TABLES[Account]
    statement = command(
        sa.update(table)
        .where(table.c.account_id == sa.bindparam("account_id"), table.c.currency == "USD")
        .values(is_locked=sa.bindparam("is_locked"), last_posted_at=sa.bindparam("last_posted_at"))
    )
    compiled = statement.compiled(dialect)
    assert " ".join(compiled.text.split()) == text
    assert [None if slot.is_constant else slot.name for slot in compiled.slots] == names
    given = compiled.parameters({"is_locked": True, "last_posted_at": NOW, "account_id": "a"})
    assert given == parameters
