"""What all tests share: one bank on a real database file, and both protocol eras."""

import gc
import json
import logging
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import anyio
import pytest
from jsonschema.validators import Draft202012Validator
from sqlalchemy.engine import URL
from xdist.scheduler import LoadFileScheduling

from banking_server.cli import main

from .kit import command, postgres
from .kit.any_server import any_server
from .kit.bank import START, World, copy_of, fill
from .kit.command import Cli, Ended
from .kit.words import MODES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ci",
        action="store_true",
        help="run also the tests that need PostgreSQL, a browser, Node or another framework; a "
        "program that this machine lacks fails them",
    )
    parser.addoption(
        "--nightly",
        action="store_true",
        help="run also the long tests, each of which another test stands for",
    )
    parser.addoption(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="where to keep the pictures of the views that the README shows",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run more tests at once than there are cores where many wait for a process that starts."""
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2 if config.option.ci else cores


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare `-m quick` the import of modules in which nothing is quick."""
    if config.option.markexpr != "quick" or not collection_path.name.startswith("test_"):
        return None
    return "mark.quick" not in collection_path.read_text(encoding="utf-8") or None


TOGETHER = re.compile(r"tests/adapters/|tests/server/test_(http|sessions)\.py")
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
        "needs_program(missing): runs with --ci only. `missing` says which program this machine "
        "lacks, and the test then fails for that reason; None if it lacks none",
    )
    config.addinivalue_line("markers", "ci: takes longer than the usual run may; runs with --ci")
    config.addinivalue_line(
        "markers",
        "nightly: another test shows the same in less time; this one runs with --nightly only",
    )
    config.addinivalue_line("markers", "quick: one of those that `pytest -m quick` runs")
    config.addinivalue_line("markers", "only_on(engine): the test is about this kind of database")
    config.addinivalue_line("markers", "on_each: what it shows depends on the kind of database")
    if not hasattr(config, "workerinput"):
        # Whoever stops the run in another way than by Ctrl-C leaves no database server either.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        postgres.start_of_run()
        # Whoever starts a Python process: it begins as `kit/start` says.
        path = (command.START, os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres.end_of_run()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what stands on an `engine` on SQLite, and on PostgreSQL too where that differs."""
    if "engine" in metafunc.fixturenames:
        about = metafunc.definition.get_closest_marker("only_on")
        on_postgresql = pytest.mark.needs_program(postgres.MISSING)
        on_each = metafunc.definition.get_closest_marker("on_each")
        engines = about.args if about else ("sqlite", "postgresql")[: 2 if on_each else 1]
        metafunc.parametrize(
            "engine",
            [
                pytest.param(name, marks=on_postgresql if name == "postgresql" else ())
                for name in engines
            ],
        )


LEFT_OUT = {
    "ci": "need PostgreSQL, a browser, Node, another framework or more time (pytest --ci)",
    "nightly": "are long, and other tests stand for them (pytest --nightly)",
}
"""Why the usual run skips a test, as its last line says it."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    programs = [mark.args[0] for mark in item.iter_markers("needs_program")]
    if item.get_closest_marker("nightly") and not item.config.getoption("nightly"):
        pytest.skip(LEFT_OUT["nightly"])
    if (programs or item.get_closest_marker("ci")) and not item.config.getoption("ci"):
        pytest.skip(LEFT_OUT["ci"])
    for missing in filter(None, programs):
        pytest.fail(missing, pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with one line that says what was skipped, and why."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    said = [f"{count} tests {reason}" for reason, count in reasons.most_common()]
    terminalreporter.write_line(f"Skipped: {'; '.join(said) or 'nothing'}.")


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


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings() -> Iterator[None]:
    """Let the environment hold no setting of whoever runs the tests."""
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("BANKING_")]:
            del os.environ[name]
        yield


@pytest.fixture(scope="session")
def nightly(request: pytest.FixtureRequest) -> bool:
    """Whether a test may take long."""
    return bool(request.config.getoption("nightly"))


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


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "bank.db"


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> Path:
    """A database that is there already, with the demo data."""
    return copy_of(filled, tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: Path) -> Cli:
    """Run a command in this process, without a terminal, on a database of the test's own."""
    monkeypatch.setenv("BANKING_DATABASE", str(database))
    # As in a new process; and what a command changes is undone.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("mcp"), "propagate", True)

    def invoke(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["banking-server", *arguments])
        with mock.patch.dict(os.environ), pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return invoke


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[str]:
    """Somebody else's server, over HTTP; its URL."""
    with any_server() as url:
        yield url
