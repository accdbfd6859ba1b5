"""A day at the bank, played again and again, and killed some statements later each time."""

import asyncio
import itertools
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

from banking_server.bank import sqlite
from banking_server.bank.transfers.confirm import settle

from ..kit.command import end_with_the_tests
from ..kit.words import PAYEE, SAVINGS
from .support import DAY, NOW, confirm, open_bank, prepared


def die_at(number: int) -> list[str]:
    """Let the process be killed before SQLite runs its statement of this number; each counts, the
    ones that begin, save and commit as well. Returns where those that run are written down."""
    run: list[str] = []
    connect = sqlite.connect

    def each_statement(statement: str) -> None:
        run.append(statement)
        if len(run) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect_and_watch(path: Path, *, reads: bool = False) -> sqlite3.Connection:
        connection = connect(path, reads=reads)
        connection.set_trace_callback(each_statement)
        return connection

    sqlite.connect = connect_and_watch
    return run


async def a_day(path: Path) -> None:
    """Two transfers go the same way side by side, so that their calls are committed together."""
    with path.with_suffix(".acknowledged").open("w") as acknowledged:

        def say(*words: object) -> None:
            print(*words, file=acknowledged, flush=True)

        async def prepare(day: str | None) -> str:
            outcome = await prepared(bank, "3000.00", source=SAVINGS, target=PAYEE, on=day)
            say("pending", outcome.transfer.transfer_id)
            return outcome.transfer.transfer_id

        async def agree(transfer_id: str) -> None:
            say((await confirm(bank, transfer_id)).transfer.status, transfer_id)

        bank = await open_bank(path, may_create=False)
        transfers = await asyncio.gather(prepare(None), prepare("2026-03-05"))
        await asyncio.gather(*map(agree, transfers))
        for settled in await settle(bank, as_of=(NOW + DAY).date(), now=NOW + DAY):
            say(settled.status, settled.transfer_id)
        await bank.close()


def play(filled: Path, folder: Path) -> None:
    """Play the day, each time with the kill one statement later, until it is not reached.

    In `folder` there is then for each run a copy of the database as the kill left it, and a file
    beside it of what had been acknowledged.
    """
    end_with_the_tests()
    for number in itertools.count(1):
        copy = Path(shutil.copy(filled, folder / f"{number}.db"))
        child = os.fork()
        if child == 0:
            run = die_at(number)
            asyncio.run(a_day(copy))
            (folder / "statements").write_text("\n".join(run))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            sys.exit(os.waitstatus_to_exitcode(status))
