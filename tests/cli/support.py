"""What a command says of a mistake, and what customers left at the bank before."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import anyio

from banking_server.bank import approvals, handoffs
from banking_server.bank.audit import Call
from banking_server.bank.rules import Yes
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import confirm_transfer
from banking_server.bank.transfers.prepare import Wish, prepare_transfer
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import open_bank, utc_now
from banking_server.server.settings import load_settings

from ..kit.command import Ended

T = TypeVar("T")


def one_line(ended: Ended) -> str:
    """Return the error, which is one line on standard error and nothing else."""
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.count("\n") == 1, ended
    assert ended.err.startswith("banking-server: "), ended
    return ended.err


def at_the_bank(database: Path, work: Callable[[Bank], Coroutine[Any, Any, T]]) -> T:
    async def open_and_work() -> T:
        settings = load_settings(database=database)
        async with open_bank(settings, utc_now(), load_keys(settings), create=True) as bank:
            return await work(bank)

    return anyio.run(open_and_work)


def call(tool: str) -> Call:
    return Call(customer_id="CUST001", tool=tool, at=utc_now(), chain_id="c-1", chain_level=1)


async def wait_for_an_agent(bank: Bank) -> str:
    opened = await handoffs.open_handoff(
        bank, call("request_agent_handoff"), reason="[b]Locked[/b]", choice="callback"
    )
    assert isinstance(opened, handoffs.HandoffOpened)
    return opened.handoff.handoff_id


async def prepare(bank: Bank, amount: int, on: str | None = None) -> Any:
    """Prepare a transfer from one account to another, and return what came of it."""
    wish = Wish(Decimal(amount), on, None, "acc_savings_001", "acc_everyday_001")
    return await prepare_transfer(bank, call("prepare_money_transfer"), wish)


async def wait_for_a_manager(bank: Bank) -> str:
    transfer = (await prepare(bank, 12_000)).transfer.transfer_id
    asking = call("request_manager_approval")
    requested = await approvals.request_approval(bank, asking, transfer, reason="A house")
    assert isinstance(requested, approvals.ApprovalRequested)
    return requested.approval.approval_id


async def schedule_for_tomorrow(bank: Bank) -> str:
    transfer: str = (await prepare(bank, 10, tomorrow())).transfer.transfer_id
    await confirm_transfer(bank, call("confirm_or_cancel_money_transfer"), transfer, Yes(0))
    return transfer


def tomorrow() -> str:
    return (utc_now().date() + timedelta(days=1)).isoformat()
