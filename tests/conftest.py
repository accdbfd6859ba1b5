"""What all tests share: one bank on a real database file, and both protocol eras."""

import gc
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from jsonschema.validators import Draft202012Validator
from sqlalchemy.engine import URL
from xdist.scheduler import LoadFileScheduling

from .kit import command, postgres
from .kit.bank import START, World, copy_of, fill
from .kit.words import MODES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-programs",
        action="store_true",
        help="leave nothing out: fail a test that needs a program this machine lacks, instead of "
        "skipping it, and run the whole of what is long, instead of a part that stands for it",
    )
    parser.addoption(
        "--fuzz",
        type=int,
        default=300,
        metavar="REQUESTS",
        help="how many odd requests to send over HTTP, and a tenth as many lines over stdio",
    )
    parser.addoption(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="where to keep the pictures of the views that the README shows",
    )


def pytest_xdist_auto_num_workers() -> int:
    """Run more tests at once than there are cores: most wait for a process that starts."""
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2


TOGETHER = re.compile(
    r"tests/adapters/|tests/server/test_(http|inspector|issuer|load|running|tokens)\.py"
)
"""Files whose tests load the same frameworks, or ask the same servers: one process has each."""


class Together(LoadFileScheduling):
    """Gives all tests of a file to one process, and those of some files to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        found = TOGETHER.match(nodeid)
        return str(Path(nodeid).parent) if found else str(super()._split_scope(nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    """Distribute the tests as `--dist loadfile` does, the default here, and some files together."""
    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs_program(missing): `missing` says which program is missing, or is None; the test is "
        "then skipped for that reason, or fails for it with --require-programs",
    )
    config.addinivalue_line(
        "markers",
        "whole: another test shows the same in the usual run, in less time or in one case of many; "
        "this one runs with --require-programs only",
    )
    config.addinivalue_line("markers", "only_on(engine): the test is about this kind of database")
    if not hasattr(config, "workerinput"):
        postgres.start_of_run()
        # Whoever starts a Python process: it begins as `kit/start` says.
        path = (command.START, os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres.end_of_run()


ON_EACH = {"bank", "tools"}
"""The folders of the tests that run on each kind of database; the others only use a bank."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what stands on an `engine` on each, unless it is marked as being about one."""
    if "engine" in metafunc.fixturenames:
        about = metafunc.definition.get_closest_marker("only_on")
        folder = metafunc.definition.path.parent.name
        on_postgresql = [pytest.mark.needs_program(postgres.MISSING)]
        if about is None and folder == "tools":
            # What they ask the database for, they ask the bank for: its tests run on each.
            on_postgresql.append(pytest.mark.whole)
        engines = about.args if about else ("sqlite", "postgresql")[: 1 + (folder in ON_EACH)]
        metafunc.parametrize(
            "engine",
            [
                pytest.param(name, marks=on_postgresql if name == "postgresql" else ())
                for name in engines
            ],
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    everything = item.config.getoption("require_programs")
    if item.get_closest_marker("whole") and not everything:
        pytest.skip("part of the whole that runs with --require-programs")
    for mark in item.iter_markers("needs_program"):
        (missing,) = mark.args
        if missing is None:
            continue
        if everything:
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


# What is compiled once serves every process that a test starts, and the next run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # Until everything is imported and collected.


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there to stay: it looks through it again and again."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


@pytest.fixture(scope="session", autouse=True)
def no_certificates_are_read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spare each HTTP client the 20 ms to read those of this machine: no test speaks TLS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield


@pytest.fixture(scope="session", autouse=True)
def schemas_are_checked_once() -> Iterator[None]:
    """Spare each connection the check of the same few schemas: half of all the time it takes."""
    check = Draft202012Validator.check_schema
    checked: set[str] = set()

    def check_once(schema: Any, *more: Any) -> None:
        key = json.dumps(schema, sort_keys=True)
        if key not in checked:
            check(schema, *more)
            checked.add(key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check_once)
        yield


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether nothing may be left out, however long it takes."""
    return bool(request.config.getoption("require_programs"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database just filled with the demo data, to be copied: filling takes its time."""
    path = tmp_path_factory.mktemp("filled") / "bank.db"
    anyio.run(fill, path, START)
    return path


@pytest.fixture(scope="session")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in memory, if there is one: files are the same there, and no disk is waited for.

    What the disk has to do with it is tested in `tests/bank`.
    """
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else tmp_path_factory.mktemp("banks")


@pytest.fixture(scope="session")
def filled_database() -> postgres.Resettable:
    """A PostgreSQL database just filled with the demo data."""

    async def filled(url: URL) -> None:
        await fill(url, START)

    return postgres.Resettable("world", filled)


@pytest.fixture
def world(engine: str, request: pytest.FixtureRequest, quick_folder: Path) -> Iterator[World]:
    """A bank of its own for each test."""
    if engine == "postgresql":
        made = World(request.getfixturevalue("filled_database").reset())
        yield made
        made.books_balance()
        return
    filled = request.getfixturevalue("filled")
    with TemporaryDirectory(prefix="banking-server-test-", dir=quick_folder) as folder:
        made = World(copy_of(filled, Path(folder)))
        yield made
        made.books_balance()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Both protocol eras."""
    return str(request.param)
