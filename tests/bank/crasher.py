"""A day at the bank, played again and again, and killed some statements later each time.

Arguments: a filled database, a folder for the copies, where to import from, and how many statements
later each kill is. For each run there is a copy of the database as the kill left it, and a file
beside it of what had been acknowledged.
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


def die_at(number: int) -> list[str]:
    """Let the process be killed before SQLite runs its statement of this number; each counts, the
    ones that begin, save and commit as well. Returns where those that run are written down."""
    run: list[str] = []

    def each_statement(statement: str) -> None:
        run.append(statement)
        if len(run) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def set_up_and_watch(connection: sqlite3.Connection, **options: bool) -> None:
        set_up(connection, **options)
        connection.set_trace_callback(each_statement)

    sqlite.set_up = set_up_and_watch  # type: ignore[attr-defined]
    return run


async def a_day(path: Path) -> None:
    """Two transfers go the same way side by side, so that their calls are committed together."""
    with path.with_suffix(".acknowledged").open("w") as acknowledged:

        def say(*words: object) -> None:
            print(*words, file=acknowledged, flush=True)

        async def prepare(scheduled_date: str | None) -> str:
            prepared = await prepare_transfer(
                bank,
                Call(customer_id="CUST001", tool="prepare", at=NOW),
                from_account_id="acc_savings_001",
                to_account_id="acc_payee_001",
                amount=Decimal("3000.00"),
                scheduled_date=scheduled_date,
                memo=None,
            )
            transfer_id: str = prepared.transfer.transfer_id  # type: ignore[union-attr]
            say("pending", transfer_id)
            return transfer_id

        async def confirm(transfer_id: str) -> None:
            confirmed = await confirm_transfer(
                bank,
                Call(customer_id="CUST001", tool="confirm", at=NOW),
                transfer_id,
                customer_agreed=True,
                code=None,
            )
            say(confirmed.transfer.status, transfer_id)  # type: ignore[union-attr]

        bank = await open_bank(
            path, rules=Rules(), code_key=b"k", demo_data=path, now=NOW, may_create=False
        )
        transfers = await asyncio.gather(prepare(None), prepare("2026-03-05"))
        await asyncio.gather(*map(confirm, transfers))
        tomorrow = NOW + timedelta(days=1)
        for settled in await settle(bank, as_of=tomorrow.date(), now=tomorrow):
            say(settled.status, settled.transfer_id)
        await bank.close()


for number in itertools.count(1, int(sys.argv[4])):
    copy = Path(shutil.copy(sys.argv[1], Path(sys.argv[2]) / f"{number}.db"))
    child = os.fork()
    if child == 0:
        run = die_at(number)
        asyncio.run(a_day(copy))
        Path(sys.argv[2], "statements").write_text("\n".join(run))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        sys.exit(os.waitstatus_to_exitcode(status))
