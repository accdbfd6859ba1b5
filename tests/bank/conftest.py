"""One bank a test, copied from one that is filled once."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy.engine import URL
from sqlmodel import SQLModel

from banking_server.bank.location import Location
from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction

from ..kit import postgres
from ..kit.postgres import Resettable
from .support import open_bank


@pytest.fixture(autouse=True)
def every_change_is_locked_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold every test on PostgreSQL to what `bank/postgresql.py` builds on.

    A write that changes something of a customer's has locked that customer first, and no other,
    and has read after that what it changes; or it made the record itself.
    """
    lock, run, add, change = (getattr(Transaction, n) for n in ("lock", "_run", "add", "change"))
    whose: dict[Transaction, str] = WeakKeyDictionary()  # type: ignore[assignment]
    own: dict[Transaction, list[object]] = WeakKeyDictionary()  # type: ignore[assignment]

    def locks(tx: Transaction, customer_id: str) -> None:
        assert whose.setdefault(tx, customer_id) == customer_id, "a second lock"
        lock(tx, customer_id)

    def runs(tx: Transaction, *arguments: object) -> list[object]:
        found: list[object] = run(tx, *arguments)
        if tx in whose:
            own.setdefault(tx, []).extend(found)
        return found

    def adds(tx: Transaction, record: SQLModel) -> None:
        if tx._lock_rows and isinstance(record, Transfer | Handoff | Approval):
            assert whose.get(tx) == record.customer_id, f"{record!r} is added without a lock"
        own.setdefault(tx, []).append(record)
        add(tx, record)

    def changes(tx: Transaction, record: SQLModel, **values: object) -> None:
        mine = any(record is each for each in own.get(tx, []))
        assert mine or not tx._lock_rows, f"{record!r} is changed without a lock before it was read"
        change(tx, record, **values)

    for name, checked in {"lock": locks, "_run": runs, "add": adds, "change": changes}.items():
        monkeypatch.setattr(Transaction, name, checked)


@pytest.fixture
def tmp_path(quick_folder: Path) -> Iterator[Path]:
    """A folder in memory: what a commit waits for on a disk is no matter of these tests."""
    with TemporaryDirectory(prefix="banking-server-test-", dir=quick_folder) as folder:
        yield Path(folder)


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


@pytest.fixture
def empty() -> Iterator[URL]:
    """A new database with nothing in it."""
    with postgres.empty_database() as url:
        yield url
