"""Records in and out of a transaction."""

from datetime import UTC, datetime

import pytest

from banking_server.bank.models import TABLES, Account, AuditEvent
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, reading

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
