"""A day at the bank, played again and again, and killed one statement later each time.

Arguments: a filled database, a folder for the copies, and where to import from. For each run there
is a copy of the database as the kill left it, and a file beside it of what had been acknowledged.
"""

import asyncio
import itertools
import os
import shutil
import signal
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, sys.argv[3])

from banking_server.bank import sqlite
from banking_server.bank.audit import Call
from banking_server.bank.opening import open_bank
from banking_server.bank.rules import Rules
from banking_server.bank.sqlite_file import set_up
from banking_server.bank.transfers import confirm_transfer, prepare_transfer, settle

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)


def die_at(number: int) -> None:
    """Let the process be killed before SQLite runs its statement of this number; each counts, the
    ones that begin, save and commit as well."""
    count = itertools.count(1)

    def each_statement(_: str) -> None:
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def set_up_and_watch(connection: sqlite3.Connection, **options: bool) -> None:
        set_up(connection, **options)
        connection.set_trace_callback(each_statement)

    sqlite.set_up = set_up_and_watch  # type: ignore[attr-defined]


async def a_day(path: Path) -> None:
    with path.with_suffix(".acknowledged").open("w") as acknowledged:

        def say(*words: object) -> None:
            print(*words, file=acknowledged, flush=True)

        bank = await open_bank(path, rules=Rules(), code_key=b"k", demo_data=path, now=NOW)
        for scheduled_date in (None, "2026-03-05"):
            prepared = await prepare_transfer(
                bank,
                Call(customer_id="CUST001", tool="prepare", at=NOW),
                from_account_id="acc_savings_001",
                to_account_id="acc_payee_001",
                amount=Decimal("3000.00"),
                scheduled_date=scheduled_date,
                memo=None,
            )
            transfer_id = prepared.transfer.transfer_id  # type: ignore[union-attr]
            say("pending", transfer_id)
            confirmed = await confirm_transfer(
                bank,
                Call(customer_id="CUST001", tool="confirm", at=NOW),
                transfer_id,
                customer_agreed=True,
                code=None,
            )
            say(confirmed.transfer.status, transfer_id)  # type: ignore[union-attr]
        tomorrow = NOW + timedelta(days=1)
        for settled in await settle(bank, as_of=tomorrow.date(), now=tomorrow):
            say(settled.status, settled.transfer_id)
        await bank.close()


for number in itertools.count(1):
    copy = Path(shutil.copy(sys.argv[1], Path(sys.argv[2]) / f"{number}.db"))
    child = os.fork()
    if child == 0:
        die_at(number)
        asyncio.run(a_day(copy))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        sys.exit(os.waitstatus_to_exitcode(status))
