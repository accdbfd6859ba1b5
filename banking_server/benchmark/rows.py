"""What is measured, and what each figure must reach: the rows of the benchmark's table."""

import shutil
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from banking_server.bank.location import URL
from banking_server.bank.scale import (
    ACCOUNTS_EACH,
    BYTES_PER_ENTRY,
    Scale,
    account_id,
    add_at_scale,
    customer_id,
)
from banking_server.benchmark import bare
from banking_server.benchmark.calls import Caller
from banking_server.benchmark.figures import Figure, Round
from banking_server.benchmark.flood import DESCRIPTORS, SOCKETS, idle_sockets, limit_descriptors
from banking_server.benchmark.load import BenchmarkFailed, Load, Measured, Step, measure
from banking_server.benchmark.machine import fsync_ms
from banking_server.benchmark.servers import (
    BankServer,
    Server,
    bank_server,
    bank_servers_on,
    bare_server,
    make_bank,
    over_stdio,
    proxy_server,
    seconds_to_first_answer,
)
from banking_server.chaining import (
    CLIENT_EXTENSION,
    ToolCatalog,
    call_tool_with_chaining,
)
from banking_server.server.build import utc_now

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

SMALL: Final = Scale(accounts=1_000, entries=10_000)

_MANY: Final = 16
_WARM_UP_SECONDS: Final = 1.0

Connections = Sequence[tuple[Step, ...]]
"""What each connection of a load sends, over and over."""


@dataclass
class Bench:
    """What the rows have in common: how long is measured, and the servers.

    A server is started when the first row needs it, and runs until the end.
    """

    folder: Path
    rounds: int
    seconds: float
    """Seconds of each measurement."""
    calls: int
    """The calls after which a server's memory is looked at for the second time."""
    scale: Scale
    """The size of the large bank."""
    database: URL | None = None
    """An empty PostgreSQL database, for the row about several servers."""
    loads: list[Measured] = field(default_factory=list[Measured])
    """What came of each load of a row."""
    _servers: ExitStack = field(default_factory=ExitStack)

    def load(
        self, server: Server, connections: Connections, *, calls: int | None = None
    ) -> Measured:
        """Send a load to a server: for the usual time, or until so many answers have come.

        Raises `BenchmarkFailed` if one answer is wrong.
        """
        seconds = self.seconds if calls is None else None
        return self.send(Load((server.port,), tuple(connections), seconds, calls))

    def warm_up(self, server: Server, connections: Connections) -> None:
        """Let a server answer for a while before it is measured. Raises as `load`."""
        seconds = min(self.seconds, _WARM_UP_SECONDS)
        self.send(Load((server.port,), tuple(connections), seconds))

    def send(self, load: Load) -> Measured:
        """Send a load. Raises `BenchmarkFailed` if one answer is wrong."""
        measured = measure(load)
        self.loads.append(measured)
        if measured.wrong:
            raise BenchmarkFailed(
                f"{measured.wrong} of the answers were wrong. The first: {measured.first_wrong}"
            )
        return measured

    @cached_property
    def bare(self) -> Server:
        """The bare server."""
        return self._servers.enter_context(bare_server(self.folder))

    @cached_property
    def bank(self) -> BankServer:
        """The bank's server, with the demo data."""
        return self._servers.enter_context(bank_server(self.demo_database))

    @cached_property
    def small(self) -> BankServer:
        """The bank's server, with a small bank."""
        return self._servers.enter_context(bank_server(self._generated(SMALL)))

    @cached_property
    def large(self) -> BankServer:
        """The bank's server, with the large bank."""
        return self._servers.enter_context(bank_server(self._generated(self.scale)))

    @cached_property
    def demo_database(self) -> Path:
        """A database with the demo data."""
        return make_bank(self.folder / "demo" / "bank.db")

    def _generated(self, scale: Scale) -> Path:
        needed, free = scale.entries * BYTES_PER_ENTRY, shutil.disk_usage(self.folder).free
        if free < needed:
            raise BenchmarkFailed(
                f"A bank of {scale.entries:,} entries takes {needed / 2**30:.1f} GiB, and "
                f"{free / 2**30:.1f} GiB are free. --accounts and --entries make it smaller."
            )
        database = make_bank(self.folder / f"{scale.accounts}-accounts" / "bank.db")
        add_at_scale(database, scale, utc_now())
        return database

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()

    def in_turn(self, *measurements: Callable[[], Round]) -> tuple[Round, ...]:
        """Make the measurements in turn, in each round."""
        rounds = []
        for _ in range(self.rounds):
            found: Round = {}
            for measurement in measurements:
                found |= measurement()
            rounds.append(found)
        return tuple(rounds)


def _constants(bare_one: Server, connections: int) -> Connections:
    return [(Caller(bare_one.port).constant(),)] * connections


def _locked_prepares(bank: BankServer, connections: int) -> Connections:
    return [(bank.caller(CUSTOMER).locked_prepare(LOCKED, PAID_TO),)] * connections


def _balances(bank: BankServer, connections: int) -> Connections:
    return [(bank.caller(CUSTOMER).balance(PAID_TO),)] * connections


def _pairs(bank: BankServer, connections: int) -> Connections:
    return _pairs_in_turn([bank], connections)


def _pairs_in_turn(banks: Sequence[BankServer], connections: int) -> Connections:
    made = []
    for number in range(connections):
        bank = banks[number % len(banks)]
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
    ours, constant = connections(bench.bank, _MANY), _constants(bench.bare, _MANY)
    bench.warm_up(bench.bare, constant)
    bench.warm_up(bench.bank, ours)
    rounds = bench.in_turn(
        lambda: {"bare": bench.load(bench.bare, constant).rate("bare")},
        lambda: {"bank": bench.load(bench.bank, ours).rate(label)},
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
    ours, constant = _locked_prepares(bench.bank, 1), _constants(bench.bare, 1)
    bench.warm_up(bench.bare, constant)
    bench.warm_up(bench.bank, ours)
    rounds = bench.in_turn(
        lambda: {"bare": bench.load(bench.bare, constant).labels["bare"].p50},
        lambda: {"fsync": fsync_ms(bench.folder)},
        lambda: {"bank": bench.load(bench.bank, ours).labels["prepare"].p50},
    )
    bounded = tuple(
        {**each, "bare + fsync + 1": each["bare"] + each["fsync"] + 1} for each in rounds
    )
    return [
        Figure("locked prepare, c = 1, p50", "ms", "bare + fsync + 1", "bank", bounded, at_most=1)
    ]


def chain(bench: Bench) -> list[Figure]:
    """A chain that the SDK's client follows, against its two calls made one after the other."""

    bank = bench.bank

    async def rounds() -> tuple[Round, ...]:
        async with _client(bank.url, bank.token(CUSTOMER)) as client:
            catalog = ToolCatalog(client)
            await _chain_round(client, catalog, 0)  # The first one reads the list of the tools.
            return tuple(
                [await _chain_round(client, catalog, bench.seconds) for _ in range(bench.rounds)]
            )

    measured = _with_clients(rounds)
    return [Figure("chain followed, p50", "ms", "two calls", "chain", measured, at_most=1.1)]


def _with_clients(rounds: Callable[[], Awaitable[tuple[Round, ...]]]) -> tuple[Round, ...]:
    """Measure with clients of the SDK. Raises `BenchmarkFailed`, whatever they raise."""
    try:
        return anyio.run(rounds)
    except BenchmarkFailed:
        raise
    except Exception as error:  # In whatever it is wrapped.
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise BenchmarkFailed(f"A client failed: {cause}") from error


@asynccontextmanager
async def _client(
    server: str | StdioServerParameters, token: str | None = None
) -> AsyncIterator[Client]:
    """A client of a URL, or of a command that is started for it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        target = (
            streamable_http_client(server, http_client=http) if isinstance(server, str) else server
        )
        async with Client(target, extensions=[CLIENT_EXTENSION]) as client:
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


def proxy(bench: Bench) -> list[Figure]:
    """How long one call takes through `tool-chaining-proxy`, against the same call without it."""
    bank = bench.bank
    served = ("banking_server", "--database", str(bench.demo_database), "--customer", CUSTOMER)
    through = ("banking_server.proxy", "--", sys.executable, "-m", *served)

    async def rounds() -> tuple[Round, ...]:
        async with AsyncExitStack() as stack:
            url = stack.enter_context(proxy_server(bank, CUSTOMER, bench.folder))
            clients = {
                name: await stack.enter_async_context(client)
                for name, client in (
                    ("HTTP, direct", _client(bank.url, bank.token(CUSTOMER))),
                    ("HTTP, proxy", _client(url)),
                    ("stdio, direct", _client(over_stdio(*served))),
                    ("stdio, proxy", _client(over_stdio(*through))),
                )
            }
            await _calls_in_turn(clients, min(bench.seconds, _WARM_UP_SECONDS))
            return tuple(
                [await _calls_in_turn(clients, bench.seconds) for _ in range(bench.rounds)]
            )

    measured = _with_clients(rounds)
    return [
        Figure(
            f"balance through tool-chaining-proxy, {over}, p50",
            *("ms", f"{over}, direct", f"{over}, proxy", measured),
        )
        for over in ("HTTP", "stdio")
    ]


async def _calls_in_turn(clients: Mapping[str, Client], seconds: float) -> Round:
    """Make the same call through each client in turn, and return the median of each, in ms."""
    found: dict[str, list[float]] = {name: [] for name in clients}
    end = time.perf_counter() + seconds * len(clients)
    while time.perf_counter() < end or not all(found.values()):
        for name, client in clients.items():
            began = time.perf_counter()
            result = await client.call_tool("get_account_balance", {"accountId": PAID_TO})
            found[name].append(time.perf_counter() - began)
            if (result.structured_content or {}).get("accountId") != PAID_TO:
                raise BenchmarkFailed(f"A balance was wrong ({name}): {result.content}")
    return {name: 1000 * statistics.median(times) for name, times in found.items()}


def scale(bench: Bench) -> list[Figure]:
    """How long one customer's calls take in a large bank, against a small one."""
    labels = ("statement", "balance", "list", "prepare")
    busy, other = account_id(0), account_id(1)

    def calls(bank: BankServer) -> Connections:
        caller = bank.caller(customer_id(0))
        reads = (caller.statement(busy), caller.balance(busy), caller.accounts(busy))
        to, fro = caller.pair(busy, other, "to"), caller.pair(other, busy, "fro")
        return [(*reads, *to, *reads, *fro)]

    def latencies(name: str, bank: BankServer) -> Round:
        measured = bench.load(bank, calls(bank))
        return {f"{label}, {name}": measured.labels[label].p50 for label in labels}

    bench.warm_up(bench.small, calls(bench.small))
    bench.warm_up(bench.large, calls(bench.large))
    rounds = bench.in_turn(
        lambda: latencies("small", bench.small), lambda: latencies("large", bench.large)
    )
    size = f"{bench.scale.accounts:,} accounts, {bench.scale.entries:,} entries"
    return [
        Figure(
            f"{label}, p50, {size}", "ms", f"{label}, small", f"{label}, large", rounds, at_most=1.2
        )
        for label in labels
    ]


def neighbour(bench: Bench) -> list[Figure]:
    """How long another customer waits while four clients read statements of the busy account."""
    other = bench.large.caller(customer_id(1))
    alone = [(other.balance(account_id(ACCOUNTS_EACH)),)]
    reader = (bench.large.caller(customer_id(0)).statement(account_id(0)),)
    among = [*alone, *[reader] * 4]
    bench.warm_up(bench.large, among)
    rounds = bench.in_turn(
        lambda: {"alone": bench.load(bench.large, alone).labels["balance"].p99},
        lambda: {"with readers": bench.load(bench.large, among).labels["balance"].p99},
    )
    what = f"another customer, p99, four readers of {bench.scale.entries // 10:,} entries"
    return [Figure(what, "ms", "alone", "with readers", rounds, at_most=2)]


def flood(bench: Bench) -> list[Figure]:
    """How long a customer waits while somebody holds connections, and what is logged about it."""
    set_up = partial(limit_descriptors, DESCRIPTORS)
    with bank_server(bench.demo_database, set_up) as bank:
        one = [(bank.caller(CUSTOMER).balance(PAID_TO),)]

        def p99() -> float:
            return bench.load(bank, one).labels["balance"].p99

        def flooded() -> Round:
            with idle_sockets(bank.port):
                return {"flooded": p99(), "log": bank.log.stat().st_size}

        bench.warm_up(bank, one)
        rounds = bench.in_turn(lambda: {"alone": p99()}, flooded, lambda: {"1 MB": 1_000_000})
    what = f"{SOCKETS:,} idle sockets against {DESCRIPTORS:,} descriptors"
    return [
        Figure(f"a customer, p99, {what}", "ms", "alone", "flooded", rounds, at_most=2),
        Figure(f"log, {what}", "bytes", "1 MB", "log", rounds, at_most=1),
    ]


def stdio(bench: Bench) -> list[Figure]:
    """From the start of a server over stdio to its first answer, against the bare server."""

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


def servers(bench: Bench) -> list[Figure]:
    """Pairs a second of one, two and three servers on one PostgreSQL database."""
    if bench.database is None:
        raise BenchmarkFailed("The row about several servers takes --database.")
    with bank_servers_on(bench.database, 3, bench.folder) as banks:

        def pairs(count: int, seconds: float) -> Round:
            some = banks[:count]
            load = Load(
                tuple(bank.port for bank in some), tuple(_pairs_in_turn(some, _MANY)), seconds
            )
            return {f"{count}": bench.send(load).rate("confirm")}

        for count in (1, 2, 3):
            pairs(count, min(bench.seconds, _WARM_UP_SECONDS))
        rounds = bench.in_turn(
            *(partial(pairs, count, bench.seconds) for count in (1, 2, 3)),
        )
    return [
        Figure(f"pairs on PostgreSQL, c = 16, {count} servers", "a second", "1", f"{count}", rounds)
        for count in (2, 3)
    ]


ROWS: Final[Mapping[str, Callable[[Bench], list[Figure]]]] = {
    "locked-16": locked_16,
    "locked-1": locked_1,
    "balance-16": balance_16,
    "pairs-16": pairs_16,
    "chain": chain,
    "proxy": proxy,
    "scale": scale,
    "neighbour": neighbour,
    "flood": flood,
    "stdio": stdio,
    "memory": memory,
}
"""What can be measured, by the name that `--only` takes, in the order of the table."""

ROWS_ON_POSTGRESQL: Final = {"servers": servers}
"""What can be measured with `--database`."""
