"""What is measured, and what each figure must reach: the rows of the benchmark's table."""

import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from banking_server.benchmark import bare
from banking_server.benchmark.calls import Caller
from banking_server.benchmark.figures import Figure, Round
from banking_server.benchmark.load import BenchmarkFailed, Load, Measured, Step, measure
from banking_server.benchmark.machine import fsync_ms
from banking_server.benchmark.servers import (
    BankServer,
    Server,
    bank_server,
    bare_server,
    seconds_to_first_answer,
)
from banking_server.chaining import (
    CLIENT_EXTENSION,
    ToolCatalog,
    call_tool_with_chaining,
)

CUSTOMER: Final = "CUST001"
LOCKED: Final = "acc_checking_001"
PAID_TO: Final = "acc_savings_001"
PAGES: Final = "acc_everyday_001"
"""Has more than a page of history."""
TO_AND_FRO: Final = (
    (CUSTOMER, PAID_TO, PAGES),
    ("CUST002", "acc_checking_002", "acc_savings_002"),
    ("CUST003", "acc_checking_003", "acc_savings_003"),
)
"""Customers of the demo data, each with two accounts between which money can go to and fro."""

_MANY: Final = 16
_WARM_UP_SECONDS: Final = 1.0

Connections = Sequence[tuple[Step, ...]]
"""What each connection of a load sends, over and over."""


@dataclass
class Bench:
    """What the rows have in common: where the databases are, and how long is measured."""

    folder: Path
    rounds: int
    seconds: float
    """Seconds of each measurement."""
    calls: int
    """The calls after which a server's memory is looked at for the second time."""
    loads: list[Measured] = field(default_factory=list[Measured])
    """What came of each load so far."""

    def load(
        self, server: Server, connections: Connections, *, calls: int | None = None
    ) -> Measured:
        """Send a load to a server: for the usual time, or until so many answers have come.

        Raises `BenchmarkFailed` if one answer is wrong.
        """
        seconds = self.seconds if calls is None else None
        return self._load(Load(server.port, tuple(connections), seconds, calls))

    def warm_up(self, server: Server, connections: Connections) -> None:
        """Let a server answer for a while before it is measured. Raises as `load`."""
        seconds = min(self.seconds, _WARM_UP_SECONDS)
        self._load(Load(server.port, tuple(connections), seconds))

    def _load(self, load: Load) -> Measured:
        measured = measure(load)
        self.loads.append(measured)
        if measured.wrong:
            raise BenchmarkFailed(
                f"{measured.wrong} of the answers were wrong. The first: {measured.first_wrong}"
            )
        return measured

    @contextmanager
    def servers(self) -> Iterator[tuple[BankServer, Server]]:
        """Run the bank's server on the demo data, and the bare one."""
        with bank_server(self.demo_database) as bank, bare_server(self.folder) as bare_one:
            yield bank, bare_one

    @property
    def demo_database(self) -> Path:
        """The database with the demo data; the server makes it."""
        return self.folder / "demo" / "bank.db"

    def in_turn(self, *measurements: Callable[[], Round]) -> tuple[Round, ...]:
        """Make the measurements in turn, in each round."""
        rounds = []
        for _ in range(self.rounds):
            found: Round = {}
            for measurement in measurements:
                found |= measurement()
            rounds.append(found)
        return tuple(rounds)


def _locked_prepares(bank: BankServer, connections: int) -> Connections:
    return [(bank.caller(CUSTOMER).locked_prepare(LOCKED, PAID_TO),)] * connections


def _balances(bank: BankServer, connections: int) -> Connections:
    return [(bank.caller(CUSTOMER).balance(PAID_TO),)] * connections


def _pairs(bank: BankServer, connections: int) -> Connections:
    made = []
    for number in range(connections):
        customer, one, other = TO_AND_FRO[number % len(TO_AND_FRO)]
        # Its own memo makes each connection's transfers its own: identical ones are one.
        made.append(bank.caller(customer).to_and_fro(one, other, f"connection {number:02}"))
    return made


def _rate(
    bench: Bench,
    what: str,
    label: str,
    connections: Callable[[BankServer, int], Connections],
    at_least: float,
) -> list[Figure]:
    """Compare answers a second with the bare server's, over as many connections."""
    with bench.servers() as (bank, bare_one):
        ours = connections(bank, _MANY)
        constant = [(Caller(bare_one.port).constant(),)] * _MANY
        bench.warm_up(bare_one, constant)
        bench.warm_up(bank, ours)
        rounds = bench.in_turn(
            lambda: {"bare": bench.load(bare_one, constant).rate("bare")},
            lambda: {"bank": bench.load(bank, ours).rate(label)},
        )
    return [Figure(what, "a second", "bare", "bank", rounds, at_least=at_least)]


def locked_16(bench: Bench) -> list[Figure]:
    """Locked prepares a second, over 16 connections."""
    return _rate(bench, "locked prepare, c = 16", "prepare", _locked_prepares, 0.5)


def balance_16(bench: Bench) -> list[Figure]:
    """Balances a second, over 16 connections."""
    return _rate(bench, "balance, c = 16", "balance", _balances, 0.5)


def pairs_16(bench: Bench) -> list[Figure]:
    """Pairs of prepare and confirm a second, over 16 connections of three customers."""
    return _rate(bench, "prepare and confirm, pairs, c = 16", "confirm", _pairs, 0.2)


def locked_1(bench: Bench) -> list[Figure]:
    """How long one locked prepare takes, over one connection."""
    with bench.servers() as (bank, bare_one):
        ours, constant = _locked_prepares(bank, 1), [(Caller(bare_one.port).constant(),)]
        bench.warm_up(bare_one, constant)
        bench.warm_up(bank, ours)
        rounds = bench.in_turn(
            lambda: {"bare": bench.load(bare_one, constant).latency("bare").p50},
            lambda: {"fsync": fsync_ms(bench.folder)},
            lambda: {"bank": bench.load(bank, ours).latency("prepare").p50},
        )
    bounded = tuple(
        {**each, "bare + fsync + 1": each["bare"] + each["fsync"] + 1} for each in rounds
    )
    return [
        Figure("locked prepare, c = 1, p50", "ms", "bare + fsync + 1", "bank", bounded, at_most=1)
    ]


def chain(bench: Bench) -> list[Figure]:
    """A chain that the SDK's client follows, against its two calls made one after the other."""
    with bank_server(bench.demo_database) as bank:

        async def rounds() -> tuple[Round, ...]:
            async with _client(bank) as client:
                catalog = ToolCatalog(client)
                return tuple(
                    [
                        await _chain_round(client, catalog, bench.seconds)
                        for _ in range(bench.rounds)
                    ]
                )

        measured = anyio.run(rounds)
    return [Figure("chain followed, p50", "ms", "two calls", "chain", measured, at_most=1.1)]


@asynccontextmanager
async def _client(bank: BankServer) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {bank.token(CUSTOMER)}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(bank.url, http_client=http), extensions=[CLIENT_EXTENSION]
        ) as client,
    ):
        yield client


async def _chain_round(client: Client, catalog: ToolCatalog, seconds: float) -> Round:
    """Make the chain and the two calls in turn, and return the median of each, in ms."""
    arguments = {"fromAccountId": LOCKED, "toAccountId": PAID_TO, "amount": 250}
    first, second = "prepare_money_transfer", "request_agent_handoff"
    chains: list[float] = []
    calls: list[float] = []
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or not chains:
        began = time.perf_counter()
        followed = await call_tool_with_chaining(client, first, arguments, catalog=catalog)
        between = time.perf_counter()
        one = await client.call_tool(first, arguments)
        reason = (one.meta or {})["nextTool"]["arguments"]
        two = await client.call_tool(second, reason)
        ended = time.perf_counter()
        steps = [(step.tool, step.result.is_error) for step in followed.steps]
        if steps != [(first, False), (second, False)] or one.is_error or two.is_error:
            raise BenchmarkFailed(f"A chain went wrong: {followed.outcome}, {followed.detail}.")
        chains.append(between - began)
        calls.append(ended - between)
    return {
        "two calls": 1000 * statistics.median(calls),
        "chain": 1000 * statistics.median(chains),
    }


def stdio(bench: Bench) -> list[Figure]:
    """From the start of a server over stdio to its first answer, against the bare server."""
    with bank_server(bench.demo_database):
        pass  # It has made the database.

    def median_of_a_few() -> Round:
        times: dict[str, list[float]] = {"bare": [], "bank": []}
        end = time.perf_counter() + 2 * bench.seconds
        while time.perf_counter() < end or not times["bank"]:
            times["bare"].append(
                seconds_to_first_answer(bare.TOOL, bare.SAYS, "banking_server.benchmark.bare")
            )
            times["bank"].append(
                seconds_to_first_answer(
                    *("list_accounts", LOCKED, "banking_server"),
                    *("--database", str(bench.demo_database), "--customer", CUSTOMER),
                )
            )
        return {name: 1000 * statistics.median(found) for name, found in times.items()}

    rounds = bench.in_turn(median_of_a_few)
    return [Figure("stdio, start to first answer", "ms", "bare", "bank", rounds, at_most=1.5)]


def memory(bench: Bench) -> list[Figure]:
    """What the server holds in memory after many calls, against after a hundredth of them."""
    few = max(1, bench.calls // 100)
    with bank_server(bench.demo_database) as bank:
        caller = bank.caller(CUSTOMER)
        reads = (
            caller.locked_prepare(LOCKED, PAID_TO),
            caller.balance(PAID_TO),
            caller.accounts(LOCKED),
            caller.statement(PAGES),
        )
        connections = [(*reads, *pair) for pair in _pairs(bank, _MANY)]
        bench.load(bank, connections, calls=few)
        before = bank.memory_mib()
        bench.load(bank, connections, calls=bench.calls - few)
        measured = {"before": before, "after": bank.memory_mib()}
    what = f"memory after {bench.calls:,} calls, before: after {few:,}"
    return [Figure(what, "MiB", "before", "after", (measured,), at_most=1.1)]


ROWS: Final[Mapping[str, Callable[[Bench], list[Figure]]]] = {
    "locked-16": locked_16,
    "locked-1": locked_1,
    "balance-16": balance_16,
    "pairs-16": pairs_16,
    "chain": chain,
    "stdio": stdio,
    "memory": memory,
}
"""What can be measured, by the name that `--only` takes, in the order of the table."""
