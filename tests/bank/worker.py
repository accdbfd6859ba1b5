"""A process that works on a bank until it is done or killed; it prints what was acknowledged.

Arguments: the database, the data folder, a name, how many transfers, and where to import from. It
begins when it reads a line; that can name a transfer which all of them confirm.
"""

import asyncio
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, sys.argv[5])

from banking_server.bank.audit import Call
from banking_server.bank.location import read_location
from banking_server.bank.opening import open_bank
from banking_server.bank.rules import Rules
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import Posted, Prepared, confirm_transfer, prepare_transfer


def say(*words: object) -> None:
    print(*words, flush=True)


async def one_transfer(bank: Bank, name: str, number: int) -> None:
    def call() -> Call:
        return Call(customer_id="CUST001", tool=name, at=datetime.now(UTC))

    accounts = ["acc_savings_001", "acc_everyday_001"]
    if number % 2:
        accounts.reverse()
    prepared = await prepare_transfer(
        bank,
        call(),
        from_account_id=accounts[0],
        to_account_id=accounts[1],
        amount=Decimal("1.00"),
        scheduled_date=None,
        memo=f"{name} {number}",
    )
    assert isinstance(prepared, Prepared), prepared
    transfer_id = prepared.transfer.transfer_id
    say("prepared", transfer_id)
    receipts = await asyncio.gather(
        *(
            confirm_transfer(bank, call(), transfer_id, customer_agreed=True, code=None)
            for _ in range(2)
        )
    )
    assert isinstance(receipts[0], Posted), receipts
    assert receipts[0] == receipts[1]
    say("posted", transfer_id)


async def main() -> None:
    path, data, name, count = sys.argv[1:5]
    bank = await open_bank(
        read_location(path),
        rules=Rules(),
        code_key=b"k",
        demo_data=Path(data),
        now=datetime.now(UTC),
        may_create=True,
    )
    say("ready", name)
    _, *shared = (await asyncio.to_thread(sys.stdin.readline)).split()
    for number in range(int(count)):
        await one_transfer(bank, name, number)
        if shared and number == int(count) // 2:
            call = Call(customer_id="CUST001", tool=name, at=datetime.now(UTC))
            receipt = await confirm_transfer(bank, call, shared[0], customer_agreed=True, code=None)
            say("receipt", receipt)
    await bank.close()


asyncio.run(main())
