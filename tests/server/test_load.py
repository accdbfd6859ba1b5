"""What the HTTP server answers while the bank cannot be asked, and `GET /health`."""

import asyncio
import logging
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest

from banking_server.bank.storage import BankBusy, DatabaseUnavailable
from banking_server.server import http as server

from .in_memory import LOOK, Bank, bank_in_memory

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


# --- the bank cannot be asked ---------------------------------------------------------------------


async def test_a_token_that_cannot_be_checked_is_an_incident_unless_the_bank_is_busy(
    full: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [BankBusy, DatabaseUnavailable("The disk of S3CRET is gone.")]
    async with bank_in_memory(full) as bank:
        monkeypatch.setattr(server, "is_customer", AsyncMock(side_effect=failures))
        busy, answer = await bank.send(LOOK), await bank.send(LOOK)
    for each in (busy, answer):
        assert (each.status_code, each.headers["Retry-After"]) == (503, "1")
    assert "The bank is busy" in busy.text
    assert "S3CRET" not in answer.text
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    incident = answer.text.rsplit(maxsplit=1)[1].rstrip(".")
    assert incident in logged.getMessage()
    assert "S3CRET" in logged.getMessage()


# --- health ---------------------------------------------------------------------------------------


async def ask(bank: Bank, method: str = "GET", **headers: str) -> httpx2.Response:
    return await bank.http.request(method, "http://10.0.0.7:8000/health", headers=headers)


async def test_health_is_ok_for_any_caller(full: Path) -> None:
    """Whoever asks, by whatever address, and with no token or a bad one."""
    async with bank_in_memory(full) as bank:
        for headers in ({}, {"Host": "evil.example"}, {"Authorization": "Bearer garbage"}):
            answer = await ask(bank, **headers)
            assert (answer.status_code, answer.content) == (200, b'{"status":"ok"}')
            assert set(answer.headers) == {"content-length", "content-type", "cache-control"}
        assert (await ask(bank, "HEAD")).status_code == 200
        assert (await ask(bank, "POST")).status_code == 405


async def test_health_is_unavailable_while_the_bank_cannot_be_read(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEALTH_SECONDS", 0.01)
    async with bank_in_memory(full) as bank:
        for silent in (asyncio.Event().wait(), asyncio.sleep(0, DatabaseUnavailable("Gone."))):

            async def asked(*_: Any, says: Any = silent) -> None:
                raise await says

            monkeypatch.setattr(server, "is_customer", asked)
            answer = await ask(bank)
            assert (answer.status_code, answer.content) == (503, b'{"status":"unavailable"}')
