"""One bank a test, copied from one that is filled once."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from banking_server.bank.storage import Bank

from .support import open_bank


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demo data in it, closed."""
    path = tmp_path_factory.mktemp("template") / "bank.db"

    async def fill() -> None:
        await (await open_bank(path)).close()

    asyncio.run(fill())
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    """A filled database of the test's own."""
    return Path(shutil.copy(template, tmp_path / "bank.db"))


@pytest.fixture
async def bank(path: Path, anyio_backend: str) -> AsyncIterator[Bank]:
    """The same, open."""
    bank = await open_bank(path)
    yield bank
    await bank.close()
