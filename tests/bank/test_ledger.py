"""A clock that is wrong is told of, since its dates stay in the books."""

import logging
from pathlib import Path

import pytest

from .support import DAY, MINUTE, NOW, confirm, open_bank, posted, prepared

pytestmark = pytest.mark.anyio


async def test_a_clock_behind_the_newest_entry_is_told_in_the_log(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bank = await open_bank(path)
    transfer_id = (await prepared(bank, at=NOW + 200 * DAY)).transfer.transfer_id
    await confirm(bank, transfer_id, at=NOW + 200 * DAY + MINUTE)
    assert caplog.messages == []
    await posted(bank)
    assert "The clock says 2026-03-04 10:00:00+00:00, but" in caplog.text
    await bank.close()
    caplog.clear()
    await (await open_bank(path)).close()
    assert "the newest entry is dated 2026-09-20 10:01:00+00:00" in caplog.text
