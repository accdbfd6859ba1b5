"""One bank a test, copied from one that is filled once."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import Location
from banking_server.bank.storage import Bank

from ..kit.postgres import Resettable
from .support import open_bank


async def fill(location: Location) -> None:
    await (await open_bank(location)).close()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the demo data in it, closed."""
    path = tmp_path_factory.mktemp("template") / "bank.db"
    asyncio.run(fill(path))
    return path


@pytest.fixture(scope="session")
def database() -> Resettable:
    """A PostgreSQL database with the demo data in it."""
    return Resettable("bank", fill)


@pytest.fixture
def path(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path | URL:
    """A filled database of the test's own."""
    if engine == "postgresql":
        url: URL = request.getfixturevalue("database").reset()
        return url
    return Path(shutil.copy(request.getfixturevalue("template"), tmp_path / "bank.db"))


@pytest.fixture
async def bank(path: Location, anyio_backend: str) -> AsyncIterator[Bank]:
    """The same, open."""
    bank = await open_bank(path)
    yield bank
    await bank.close()
