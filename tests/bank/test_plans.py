"""No call reads more as the bank grows: every statement of a call is answered from an index."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from banking_server.bank.accounts import get_balance, is_customer, list_accounts
from banking_server.bank.handoffs import find_open_handoff, list_open_handoffs, open_handoff
from banking_server.bank.statement import get_statement
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement
from banking_server.bank.transfers.records import list_codes

from ..kit.words import EVERYDAY, LOCKED, wrong
from .support import CODE_KEY, NOW, call, confirm, prepare, prepared, use

pytestmark = pytest.mark.anyio


async def a_day(bank: Bank) -> None:
    """What customers, the clock and the agents' desk ask of the bank."""
    await is_customer(bank, "CUST001")
    await list_accounts(bank, call())
    await get_balance(bank, call(), EVERYDAY)
    first = await get_statement(bank, call(), EVERYDAY, days=30, cursor=None)
    await get_statement(bank, call(), EVERYDAY, days=30, cursor=first.next_cursor)  # type: ignore[union-attr]
    await get_statement(bank, call(), EVERYDAY, days=30, month="last", cursor=None)
    await prepare(bank, source=LOCKED)
    await prepare(bank, source="acc_nowhere")
    one = await prepared(bank)
    await confirm(bank, one.transfer.transfer_id, code=wrong(one.code))
    await use(bank)
    await list_codes(bank, CODE_KEY, NOW)
    await list_codes(bank, CODE_KEY, NOW, "CUST001")
    await open_handoff(bank, call(), reason="Lost card", choice=None)
    await find_open_handoff(bank, "CUST001", "Lost card")
    await list_open_handoffs(bank)


async def test_every_statement_of_a_call_is_answered_from_an_index(
    bank: Bank, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, int] = {}
    compiled = Statement.compiled

    def remember(statement: Statement[Any], dialect: sa.Dialect) -> Any:
        found = compiled(statement, dialect)
        asked[found.text] = len(found.places)
        return found

    monkeypatch.setattr(Statement, "compiled", remember)
    await a_day(bank)
    assert len(asked) > 25
    plans = {}
    with closing(sqlite3.connect(path)) as connection:
        for text, parameters in asked.items():
            # Without their values, as SQLite looks for an index before it knows them.
            rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", [None] * parameters)
            plans[text] = [detail for *_, detail in rows]
    whole = {
        text: plan
        for text, plan in plans.items()
        if any(step.startswith("SCAN") and "INDEX" not in step for step in plan)
    }
    assert whole == {}
