"""A server whose database is deleted or replaced acknowledges nothing more, and ends."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..kit.command import PATIENCE, command, environment, run
from ..kit.servers import http_server, post, tool_call
from ..kit.words import TO_SAVINGS

LINE = "was deleted, replaced or overwritten while it was in use."

PREPARE = tool_call("prepare_money_transfer", {**TO_SAVINGS, "amount": 5})


@pytest.mark.nightly
@pytest.mark.parametrize("workers", ["1", "2"])
def test_over_http(tmp_path: Path, workers: str) -> None:
    database = tmp_path / "bank.db"
    with http_server(tmp_path, "--workers", workers, BANKING_LOG_LEVEL="INFO") as server:
        token = server.token()
        end = time.monotonic() + PATIENCE
        # A process that began later would take what it finds there then.
        while server.logged().count(" serves.") < int(workers) and time.monotonic() < end:
            time.sleep(0.02)
        assert post(server, token, PREPARE).json()["result"]["structuredContent"]["transferId"]
        if workers == "1":
            database.unlink()
        else:
            shutil.copy(database, tmp_path / "copy").rename(database)
        for _ in range(4):
            try:
                answer = post(server, token, PREPARE)
            except httpx2.TransportError:
                break  # It has ended already.
            assert answer.status_code >= 500 or answer.json()["result"]["isError"], answer.text
        assert server.process.wait(PATIENCE) == 3
    said = [line for line in server.logged().splitlines() if line.startswith("banking-server: ")]
    assert 1 <= len(said) <= int(workers)
    assert f"The database {database} {LINE}" in said[0]
    if workers == "1":
        ended = run("handoffs", BANKING_DATABASE=str(database))
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
        assert "database create" in ended.stderr
    else:
        # The one that was put there is sound.
        assert run("handoffs", BANKING_DATABASE=str(database)).returncode == 0


def test_over_stdio_with_nobody_asking(database: Path) -> None:
    server = subprocess.Popen(
        command("--database", str(database), "--customer", "CUST001"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    asked: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    server.stdin.write(json.dumps(asked) + "\n")
    server.stdin.flush()
    assert "banking-server" in server.stdout.readline()
    database.unlink()
    assert server.wait(PATIENCE) == 3
    _, errors = server.communicate()
    assert errors.count("\n") == 1
    assert LINE in errors
