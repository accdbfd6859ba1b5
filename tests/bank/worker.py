"""A process that works on a bank until it is done or killed; it prints what was acknowledged.

Arguments: the database, a name, and how many transfers. It begins when it reads a line, which
names a transfer that all of them confirm.
"""

import asyncio
import sys
from datetime import UTC, datetime

from banking_server.bank.location import read_location
from banking_server.bank.storage import Bank

from ..kit.words import EVERYDAY, SAVINGS
from .support import confirm, open_bank, prepared


def say(*words: object) -> None:
    print(*words, flush=True)


async def one_transfer(bank: Bank, name: str, number: int) -> None:
    now = datetime.now(UTC)
    source, target = (EVERYDAY, SAVINGS) if number % 2 else (SAVINGS, EVERYDAY)
    memo = f"{name} {number}"
    outcome = await prepared(bank, "1.00", source=source, target=target, memo=memo, at=now)
    transfer_id = outcome.transfer.transfer_id
    say("prepared", transfer_id)
    receipts = await asyncio.gather(*(confirm(bank, transfer_id, at=now) for _ in range(2)))
    assert receipts[0] == receipts[1]
    assert receipts[0].transfer.status == "posted"
    say("posted", transfer_id)


async def main() -> None:
    path, name, count = sys.argv[1:4]
    bank = await open_bank(read_location(path), now=datetime.now(UTC))
    say("ready", name)
    _, shared = (await asyncio.to_thread(sys.stdin.readline)).split()
    for number in range(int(count)):
        await one_transfer(bank, name, number)
        if number == int(count) // 2:
            say("receipt", await confirm(bank, shared, at=datetime.now(UTC)))
    await bank.close()


asyncio.run(main())
