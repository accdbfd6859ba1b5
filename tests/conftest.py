"""What all tests share: one bank on a real database file, and both protocol eras."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from .kit.bank import START, World, fill
from .kit.words import MODES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-programs",
        action="store_true",
        help="fail a test that needs a program this machine lacks, instead of skipping it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs_program(missing): `missing` says which program is missing, or is None; the test is "
        "then skipped for that reason, or fails for it with --require-programs",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs_program"):
        (missing,) = mark.args
        if missing is None:
            continue
        if item.config.getoption("require_programs"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database just filled with the demo data, to be copied: filling takes its time."""
    path = tmp_path_factory.mktemp("filled") / "bank.db"
    anyio.run(fill, path, START)
    return path


@pytest.fixture
def world(tmp_path: Path, filled: Path) -> Iterator[World]:
    """A bank of its own for each test."""
    made = World(tmp_path, filled)
    yield made
    made.books_balance()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Both protocol eras."""
    return str(request.param)
