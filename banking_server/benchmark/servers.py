"""The servers that are measured, each a process of its own, started as a user starts it."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import anyio
from mcp import StdioServerParameters
from pydantic import SecretStr

from banking_server.bank.location import URL, in_full
from banking_server.bank.opening import delete_bank
from banking_server.bank.storage import DatabaseMissing, DatabaseUnavailable
from banking_server.benchmark.calls import Caller, message
from banking_server.benchmark.load import BenchmarkFailed
from banking_server.server.build import check_before_serving, open_bank, utc_now
from banking_server.server.settings import PREFIX, Settings
from banking_server.server.tokens import Tokens, load_keys
from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE

_START_SECONDS: Final = 120
_NO_LIMITS: Final = {
    "BANKING_CALLS_PER_SECOND": "0",
    "BANKING_MAX_PENDING_TRANSFERS": "100000",
}
"""A few customers make all the calls, more than any customer may make elsewhere."""


@dataclass(frozen=True)
class Server:
    """A server that runs, at `port` of this machine."""

    port: int
    process: subprocess.Popen[bytes]

    def memory_mib(self) -> float:
        """Return the memory that it has in use: its resident set."""
        told = subprocess.run(  # noqa: S603
            ["ps", "-o", "rss=", "-p", str(self.process.pid)],  # noqa: S607
            capture_output=True,
            text=True,
        )
        return int(told.stdout) / 1024


@dataclass(frozen=True)
class BankServer(Server):
    """The bank's server."""

    settings: Settings
    log: Path
    """What it says about itself."""

    @property
    def url(self) -> str:
        """Where its clients reach it."""
        return self.settings.resource

    def token(self, customer: str) -> str:
        """Return a token that lasts as long as any measurement."""
        return Tokens.of(self.settings, load_keys(self.settings)).mint(
            customer, [READ_SCOPE, TRANSFER_SCOPE], now=utc_now(), lifetime=timedelta(days=1)
        )

    def caller(self, customer: str) -> Caller:
        """Return what makes this customer's requests."""
        return Caller(self.port, self.token(customer))


def make_bank(database: Path) -> Path:
    """Make a bank with the demo data, in a folder of its own, as a server does that finds none."""
    database.parent.mkdir()
    anyio.run(check_before_serving, Settings.model_construct(database=database))
    return database


@contextmanager
def bank_server(database: Path, set_up: Callable[[], None] | None = None) -> Iterator[BankServer]:
    """Run `banking-server serve --http` until the end of the block.

    `set_up` is called in its process first. Raises `BenchmarkFailed`.
    """
    port = _free_port()
    command = ["banking_server", "serve", "--http", "--port", str(port)]
    folder = database.parent
    with _running(command, port, folder, set_up, BANKING_DATABASE=str(database)) as process:
        # Made without its environment, which is not this process's own.
        settings = Settings.model_construct(database=database, port=port)
        yield BankServer(port, process, settings, _log(folder, port))


@contextmanager
def bank_servers_on(database: URL, count: int, folder: Path) -> Iterator[list[BankServer]]:
    """Make a bank in an empty PostgreSQL database, and run so many servers on it.

    The bank is deleted at the end of the block. Raises `BenchmarkFailed`, also if there is a bank
    already, which stays as it is.
    """
    secret = secrets.token_hex(32)
    common = Settings.model_construct(database=database, secret=SecretStr(secret))

    async def make() -> None:
        try:
            async with open_bank(common, utc_now(), create=False):
                raise BenchmarkFailed(
                    f"There is a bank in {database} already: the benchmark makes one of its own, "
                    "and deletes it afterwards."
                )
        except DatabaseMissing:
            async with open_bank(common, utc_now(), create=True):
                return

    try:
        anyio.run(make)
        try:
            with ExitStack() as running:
                yield [running.enter_context(_server_on(common, folder)) for _ in range(count)]
        finally:
            anyio.run(delete_bank, database)
    except DatabaseUnavailable as error:
        raise BenchmarkFailed(str(error)) from None


@contextmanager
def _server_on(common: Settings, folder: Path) -> Iterator[BankServer]:
    port = _free_port()
    settings = common.model_copy(update={"port": port})
    command = ["banking_server", "serve", "--http", "--port", str(port)]
    variables = {
        "BANKING_DATABASE": in_full(common.database),
        "BANKING_SECRET": common.secret.get_secret_value() if common.secret else "",
    }
    with _running(command, port, folder, None, **variables) as process:
        yield BankServer(port, process, settings, _log(folder, port))


@contextmanager
def bare_server(folder: Path) -> Iterator[Server]:
    """Run the bare server until the end of the block. Raises `BenchmarkFailed`."""
    port = _free_port()
    with _running(["banking_server.benchmark.bare", str(port)], port, folder) as process:
        yield Server(port, process)


@contextmanager
def proxy_server(bank: BankServer, customer: str, folder: Path) -> Iterator[str]:
    """Run `tool-chaining-proxy --http` for a customer in front of a bank; gives the proxy's URL.

    Until the end of the block. Raises `BenchmarkFailed`.
    """
    port = _free_port()
    command = ["banking_server.proxy", "--http", "--port", str(port), "--url", bank.url]
    token = bank.token(customer)
    with _running(command, port, folder, TOOL_CHAINING_PROXY_TOKEN=token):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def _running(
    command: list[str],
    port: int,
    folder: Path,
    set_up: Callable[[], None] | None = None,
    **variables: str,
) -> Iterator[subprocess.Popen[bytes]]:
    log = _log(folder, port)
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - a module of ours, in this Python
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=_environment(**variables),
            preexec_fn=set_up,
        )
    try:
        _wait_until_up(process, port, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _log(folder: Path, port: int) -> Path:
    return folder / f"server-{port}.log"


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise BenchmarkFailed(f"A server did not come up: {said[-1] if said else 'it said nothing'}")


def over_stdio(*command: str) -> StdioServerParameters:
    """Return how a module of ours is started by a client that talks to it over stdio."""
    return StdioServerParameters(command=sys.executable, args=["-m", *command], env=_environment())


def seconds_to_first_answer(tool: str, says: str, *command: str) -> float:
    """Start a server over stdio, call its `tool`, and return the seconds until the answer is there.

    The answer has to hold the text `says`. Raises `BenchmarkFailed`.
    """
    began = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 - a module of ours, in this Python
        [sys.executable, "-m", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as process:
        assert process.stdin is not None  # noqa: S101 - piped above
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(message(tool, {}) + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        seconds = time.perf_counter() - began
    result = json.loads(answer or b"{}").get("result", {})
    if result.get("isError", True) or says not in json.dumps(result):
        raise BenchmarkFailed(f"A server over stdio gave a wrong answer: {answer[:200]!r}")
    return seconds


def _environment(**variables: str) -> dict[str, str]:
    """Return an environment with these settings, and none of whoever runs the benchmark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    kept["PYTHONPATH"] = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**kept, **_NO_LIMITS, **variables}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
