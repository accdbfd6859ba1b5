"""What a command says of a mistake, and what customers left at the bank before."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio

from banking_server.bank import approvals, handoffs
from banking_server.bank.storage import Bank
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import open_bank, utc_now
from banking_server.server.settings import load_settings

from ..bank.support import call, confirm, prepared
from ..kit.command import Ended
from ..kit.serving import Handler, serving
from ..kit.words import EVERYDAY, SAVINGS

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


@contextmanager
def refusing_server(reason: str, description: str) -> Iterator[str]:
    """Serve over HTTP, and refuse whoever comes."""

    class Refusing(Handler):
        def do_POST(self) -> None:
            self.message()
            self.send_response(401, reason)
            told = description.replace('"', "")
            self.send_header("www-authenticate", f'Bearer error="x", error_description="{told}"')
            self.send_header("content-length", "0")
            self.end_headers()

    with serving(Refusing) as origin:
        yield f"{origin}/mcp"


async def wait_for_an_agent(bank: Bank) -> str:
    asking = replace(call("request_agent_handoff", at=utc_now()), chain_id="c-1", chain_level=1)
    opened = await handoffs.open_handoff(bank, asking, reason="[b]Locked[/b]", choice="callback")
    assert isinstance(opened, handoffs.HandoffOpened)
    return opened.handoff.handoff_id


async def prepare(bank: Bank, amount: str, on: str | None = None) -> str:
    """Prepare a transfer from one account to another, and return its id."""
    made = await prepared(bank, amount, source=SAVINGS, target=EVERYDAY, on=on, at=utc_now())
    return made.transfer.transfer_id


async def wait_for_a_manager(bank: Bank) -> str:
    transfer = await prepare(bank, "12000")
    asking = call("request_manager_approval", at=utc_now())
    requested = await approvals.request_approval(bank, asking, transfer, reason="A house")
    assert isinstance(requested, approvals.ApprovalRequested)
    return requested.approval.approval_id


async def schedule_for_tomorrow(bank: Bank) -> str:
    transfer = await prepare(bank, "10", tomorrow())
    await confirm(bank, transfer, at=utc_now())
    return transfer


def tomorrow() -> str:
    return (utc_now().date() + timedelta(days=1)).isoformat()
