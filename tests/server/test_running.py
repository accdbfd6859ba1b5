"""What stands in front of the server knows the bank while it is open, and only then."""

from pathlib import Path

import anyio
import pytest

from banking_server.server.build import open_bank, utc_now
from banking_server.server.running import Running
from banking_server.server.settings import Settings
from banking_server.tools import App

pytestmark = pytest.mark.anyio


async def test_the_bank_is_there_while_it_is_open(database: Path) -> None:
    running = Running()
    async with open_bank(Settings(database=database), utc_now()) as bank:
        app = App(bank=bank, clock=utc_now, customer=None)
        async with anyio.create_task_group() as background:
            with running.with_app(app, background):
                assert (running.app, running.background) == (app, background)
                assert await running.is_customer("CUST001")
                assert not await running.is_customer("CUST999")
    assert not await running.is_customer("CUST001")


async def test_before_that_there_is_no_bank_and_nobody_is_a_customer() -> None:
    running = Running()
    assert not await running.is_customer("CUST001")
    with pytest.raises(RuntimeError, match="not open"):
        _ = running.app
    with pytest.raises(RuntimeError, match="not open"):
        _ = running.background
