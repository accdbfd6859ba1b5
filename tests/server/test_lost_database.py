"""A server whose database is replaced acknowledges nothing more, and ends.

`test_stdio.py` shows the same of a server over stdio, in less time.
"""

import shutil
import time
from pathlib import Path

import httpx2
import pytest

from ..kit.command import PATIENCE, run
from ..kit.servers import http_server, post, tool_call
from ..kit.words import TO_SAVINGS

PREPARE = tool_call("prepare_money_transfer", {**TO_SAVINGS, "amount": 5})


@pytest.mark.nightly
def test_over_http(tmp_path: Path) -> None:
    database = tmp_path / "bank.db"
    with http_server(tmp_path, "--workers", "2", BANKING_LOG_LEVEL="INFO") as server:
        token = server.token()
        end = time.monotonic() + PATIENCE
        # A process that began later would take what it finds there then.
        while server.logged().count(" serves.") < 2 and time.monotonic() < end:
            time.sleep(0.02)
        assert post(server, token, PREPARE).json()["result"]["structuredContent"]["transferId"]
        shutil.copy(database, tmp_path / "copy").rename(database)
        for _ in range(4):
            try:
                answer = post(server, token, PREPARE)
            except httpx2.TransportError:
                break  # It has ended already.
            assert answer.status_code >= 500 or answer.json()["result"]["isError"], answer.text
        assert server.process.wait(PATIENCE) == 3
    said = [line for line in server.logged().splitlines() if line.startswith("banking-server: ")]
    assert 1 <= len(said) <= 2
    assert f"The database {database} was deleted, replaced, overwritten or shortened" in said[0]
    # The one that was put there is sound.
    assert run("handoffs", BANKING_DATABASE=str(database)).returncode == 0
