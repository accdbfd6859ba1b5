"""How fast the bank is, against a bare server of the SDK in the same run; databases are in TMPDIR.

First come instructions (`calls`, `client`, `starts`), which no neighbour on the machine changes.
Then come rates and waits: both servers are measured in turn within each round, so that whatever
else the machine does falls on both; figures are medians over the rounds. Every answer is checked,
and a wrong one ends the run. The last column is the ratio that the row had when it was last
written down. If a counted ratio is now 5 % worse, or a measured one a fifth, the exit code is 1.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from mcp import Client, StdioServerParameters

from banking_server.server.open_bank import utc_now

from ..kit import servers
from ..kit.command import command, environment
from ..kit.servers import HttpServer, http_client, http_server, stdio_client
from . import bare, in_process, scale
from .instructions import MISSING, Counter, find_counter
from .load import (
    CUSTOMER,
    LOCKED,
    MANY,
    MONEY,
    PAGES,
    PAID_TO,
    Caller,
    Connections,
    Step,
    call,
    measure,
    of_the_bank,
)

SUITE = [sys.executable, "-m", "tool_chaining_conformance"]

CALLS, ENTRIES = 100_000, 10_000_000
COUNTED, CHAINS, PASSED, WARM = 1_600, 60, 200, 60
"""Calls, chains, and calls over stdio, whose instructions are counted; calls before the last."""

PURE = {
    "PYTHONPATH": os.getcwd(),
    "PYTHONDONTWRITEBYTECODE": "",
    "COVERAGE_PROCESS_START": "",
}
"""Of each server's environment: compiled once, as what is installed is, without `kit/start`, which
spares tests the garbage collector, and not under coverage."""

Fell = AsyncIterator[bool]
"""Whether each line of a row fell."""

Measurement = Callable[[float], Awaitable[float]]
"""Takes so many seconds, and returns a figure."""

Rounds = Sequence[tuple[float, float]]
"""What was measured in each: the other, ours."""


class Bench:
    """What the rows have in common: servers, each started when the first row needs it."""

    def __init__(
        self,
        folder: Path,
        stack: ExitStack,
        rounds: int = 1,
        seconds: float = 0,
        counter: Counter | None = None,
    ) -> None:
        self.counter = counter
        self.folder, self._stack, self._rounds, self._seconds = folder, stack, rounds, seconds
        self._banks: dict[str, HttpServer] = {}

    def bank(self, name: str = "demo", entries: int = 0) -> HttpServer:
        """Return a server with the demo data, and so many entries of ten times fewer accounts."""
        folder = self.folder / name
        if name not in self._banks:
            folder.mkdir()
            if entries:
                with http_server(folder, **PURE):
                    pass  # It makes the bank.
                scale.add(folder / "bank.db", entries // 10, entries)
                os.sync()  # Now, and not beside what is measured.
            self._banks[name] = self._stack.enter_context(http_server(folder, **PURE))
        return self._banks[name]

    def start(self, module: str, *arguments: str, **variables: str) -> int:
        """Start a module that serves HTTP, until the end, and return its port, the last word."""
        port = servers.free_port()
        words = [sys.executable, "-m", module, *arguments, str(port)]
        self._stack.enter_context(servers.serving_process(words, port, **PURE, **variables))
        return port

    async def count(
        self,
        words: Sequence[str],
        ask: bytes = b"",
        says: str = "",
        *,
        times: int = 1,
        alone: bool = False,
        **variables: str,
    ) -> float:
        """Return the instructions of a command: see `Counter.count`."""
        if self.counter is None:
            raise RuntimeError(MISSING)
        env = environment(**PURE, **variables)
        counting = partial(self.counter.count, words, env, ask, says, times=times, alone=alone)
        return await asyncio.to_thread(counting)

    async def rounds(self, other: Measurement, ours: Measurement) -> Rounds:
        """Make both measurements in turn, in each round, and once before, to warm up."""
        lengths = [1, *[self._seconds] * self._rounds]
        return [(await other(each), await ours(each)) for each in lengths][1:]


def line(
    what: str,
    against: str,
    rounds: Rounds,
    better: Literal["more", "less"],
    was: float,
    margin: float = 0.2,
) -> bool:
    """Print a line of the table; return whether the ratio is worse than it `was` by more than the
    margin. `better` says which ratio is the better one."""
    ratios = [ours / other for other, ours in rounds]
    other, ours = (f"{statistics.median(each):,.2f}" for each in zip(*rounds, strict=True))
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
    print(f"| {what} | {against}: {other} | {ours} | {spread} | {was:.2f} |", flush=True)
    return ratio < was * (1 - margin) if better == "more" else ratio > was / (1 - margin)


def load(port: int, sent: Connections, label: str, percent: int = 0) -> Measurement:
    """Measure answers a second; or the milliseconds that so many of a hundred take at most."""

    async def measured(seconds: float) -> float:
        began = time.perf_counter()
        times = (await measure(port, sent, seconds))[label]
        rate = len(times) / (time.perf_counter() - began)
        return times[(len(times) - 1) * percent // 100] if percent else rate

    return measured


def repeated(way: Callable[[], Awaitable[None]]) -> Measurement:
    """Measure the median of what it takes, in milliseconds."""

    async def measured(seconds: float) -> float:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            began = time.perf_counter()
            await way()
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)

    return measured


def caller(server: HttpServer, customer: str = CUSTOMER) -> Caller:
    """Return what makes a customer's requests, with a token that lasts as long as all of it."""
    scopes, day = ["bank:read", "bank:transfer"], timedelta(days=1)
    return Caller(server.port, server.tokens.mint(customer, scopes, now=utc_now(), lifetime=day))


def counted(what: str, against: str, other: float, ours: float, was: float) -> bool:
    """Print a line about instructions; return whether the ratio is 5 % worse than it was."""
    return line(what, against, [(other, ours)], "less", was, margin=0.05)


async def calls(bench: Bench) -> Fell:
    async def process(row: str, number: int) -> float:
        """Return what a process costs that serves so many calls."""
        return await bench.count([sys.executable, "-m", in_process.__name__, str(number), row])

    def thousands(without: float, with_calls: float) -> float:
        return (with_calls - without) / COUNTED / 1e3

    other = thousands(await process("bare", 0), await process("bare", COUNTED))
    without = await process("locked", 0)  # As with each row: before its calls, some of all rows.
    for row, what, was in (
        ("locked", "locked prepare", 1.79),
        ("undeclared", "locked prepare, undeclared, no destination", 1.95),
        ("balance", "balance", 1.56),
        ("pair", "one call of a prepare and confirm", 2.5),
    ):
        ours = thousands(without, await process(row, COUNTED))
        yield counted(f"{what}, 1,000 instructions", "bare", other, ours, was)


async def client(bench: Bench) -> Fell:
    server = bench.bank()
    words = [sys.executable, "-m", in_process.__name__]
    there = [server.url, caller(server).token]
    costs = [await bench.count([*words, "0", "two", *there])]
    costs += [await bench.count([*words, str(CHAINS), way, *there]) for way in ("two", "chain")]
    two, chained = ((each - costs[0]) / CHAINS / 1e3 for each in costs[1:])
    what = "chain followed, 1,000 instructions of the client"
    yield counted(what, "two calls", two, chained, 1.1)


async def passing(bench: Bench) -> Fell:
    """What the proxy's own process needs for a call that no chain follows."""

    async def thousands(*words: str) -> float:
        few, many = [
            await bench.count(words, call(bare.TOOL, {}), bare.SAYS, times=times, alone=True)
            for times in (WARM, WARM + PASSED)
        ]
        return (many - few) / PASSED / 1e3

    nothing = [sys.executable, "-m", bare.__name__]
    other = await thousands(*nothing)
    ours = await thousands(sys.executable, "-m", "tool_chaining_proxy", "--", *nothing)
    what = "plain call, 1,000 instructions of the proxy's process"
    yield counted(what, "bare, stdio", other, ours, 1.52)


async def starts(bench: Bench) -> Fell:
    async def millions(*words: str, ask: str = "", says: str = "") -> float:
        asked = call(ask, {}) if ask else b""
        return await bench.count(words, asked, says, BANKING_DATABASE=file) / 1e6

    python, file = sys.executable, f"{bench.folder}/counted.db"
    bank = command("--customer", CUSTOMER)
    await millions(*bank, ask="list_accounts", says=LOCKED)  # It makes the database.
    bare_start = await millions(python, "-m", bare.__name__, ask=bare.TOOL, says=bare.SAYS)
    through = [python, "-m", "tool_chaining_proxy", "--trust-hints", "--", *bank]
    for what, was, words, ask in (
        ("the bank, stdio, to its first answer", 1.53, bank, "list_accounts"),
        ("proxy and bank, to the first answer", 2.57, through, "list_accounts"),
        ("tool-chaining-conformance --version", 0.105, [*SUITE, "--version"], ""),
        ("tool-chaining-conformance --help", 0.11, [*SUITE, "--help"], ""),
        ("install cursor", 0.29, command("install", "cursor"), ""),
        ("handoffs", 0.77, command("handoffs"), ""),
        ("audit", 0.77, command("audit"), ""),
    ):
        ours = await millions(*words, ask=ask, says=LOCKED if ask else "")
        what = f"{what}, million instructions"
        yield counted(what, "bare start", bare_start, ours, was)


async def http(bench: Bench) -> Fell:
    bank, rows = bench.bank(), of_the_bank(caller(bench.bank()))
    port = bench.start(bare.__name__)
    constant = Step("bare", Caller(port).request(bare.TOOL), (bare.SAYS,))
    locked = rows["locked"][0]
    other = load(port, [[constant]] * MANY, "bare")
    for row, what, label, was in (
        ("locked", "locked prepare", "prepare", 0.43),
        ("balance", "balance", "balance", 0.51),
        ("undeclared", "locked prepare, undeclared, no destination", "prepare", 0.47),
        ("pair", "prepare and confirm, pairs", "confirm", 0.17),
    ):
        rounds = await bench.rounds(other, load(bank.port, rows[row], label))
        yield line(f"{what} a second, c = {MANY}", "bare", rounds, "more", was)

    with (bench.folder / "synced").open("wb", buffering=0) as file:

        async def sync() -> None:
            file.write(bytes(4096))
            os.fsync(file.fileno())

        async def bounded(seconds: float) -> float:
            constant_p50 = await load(port, [[constant]], "bare", 50)(seconds)
            return constant_p50 + await repeated(sync)(seconds / 10) + 1

        rounds = await bench.rounds(bounded, load(bank.port, [locked], "prepare", 50))
        yield line("locked prepare, c = 1, p50 in ms", "bare + fsync + 1", rounds, "less", 0.83)


async def memory(bench: Bench) -> Fell:
    server = bench.bank("memory")
    one = caller(server)
    reads = [one.locked_prepare(**MONEY), one.balance(PAID_TO), one.statement(PAGES)]
    sent = [reads + one.to_and_fro(PAID_TO, PAGES, f"c {number}") for number in range(MANY)]

    async def after(calls: int) -> float:
        while calls > 0:
            calls -= sum(map(len, (await measure(server.port, sent, 1)).values()))
        told = subprocess.check_output(["ps", "-o", "rss=", "-p", str(server.process.pid)])
        return int(told) / 1024

    grown = (await after(CALLS // 100), await after(CALLS))
    yield line(f"memory after {CALLS:,} calls, MiB", "after a hundredth", [grown], "less", 1.03)


async def at_scale(bench: Bench) -> Fell:
    small, large = bench.bank("small", 10_000), bench.bank("large", ENTRIES)
    for label in ("statement", "balance", "list", "prepare"):
        ways = []
        for server in (small, large):
            one = caller(server, scale.SOMEBODY)
            reads = [one.statement(scale.BUSY), one.balance(scale.BUSY), one.accounts(scale.BUSY)]
            sent = [reads + one.to_and_fro(scale.BUSY, scale.OTHER, "memo")]
            ways.append(load(server.port, sent, label, 50))
        rounds = await bench.rounds(*ways)
        what = f"{label}, p50 in ms, {ENTRIES:,} entries"
        yield line(what, "10,000 entries", rounds, "less", 1.10)
    alone = [caller(large, scale.NEIGHBOUR).balance(scale.THEIRS)]
    reader = [caller(large, scale.SOMEBODY).statement(scale.BUSY)]
    ways = [load(large.port, sent, "balance", 99) for sent in ([alone], [alone, *[reader] * 4])]
    what = "another customer, p99 in ms, beside four readers of the busy account"
    yield line(what, "alone", await bench.rounds(*ways), "less", 2.99)


async def proxy(bench: Bench) -> Fell:
    server = bench.bank()
    token, arguments = caller(server).token, ["--url", server.url, "--http", "--port"]
    port = bench.start("tool_chaining_proxy", *arguments, MCP_TOKEN=token)
    database = bench.folder / "piped.db"
    args = ["-m", "tool_chaining_proxy", "--", *command("--database", str(database))]
    through = StdioServerParameters(command=sys.executable, args=args, env=environment())

    async def balance(client: Client) -> None:
        result = await client.call_tool("get_account_balance", {"accountId": PAID_TO})
        assert PAID_TO in str(result.structured_content), result

    url = f"http://127.0.0.1:{port}/mcp"
    for over, was, *both in (
        ("HTTP", 2.16, http_client(server.url, token, "auto"), http_client(url, "any", "auto")),
        ("stdio", 1.60, stdio_client(database, "auto"), Client(through)),
    ):
        async with both[0], both[1]:
            rounds = await bench.rounds(*(repeated(partial(balance, each)) for each in both))
        yield line(f"balance by proxy, {over}, p50 in ms", "direct", rounds, "less", was)


COUNTS = (calls, client, passing, starts)
ROWS = {each.__name__: each for each in (*COUNTS, http, memory, at_scale, proxy)}


async def main(*arguments: str) -> bool:
    """Print the table; return whether a ratio fell by a fifth."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--only", action="append", choices=ROWS, help="some lines; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    chosen = parser.parse_args(arguments)
    print("| measured | against | bank | ratio | rounds | was |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    with TemporaryDirectory(prefix="benchmark-") as folder, ExitStack() as stack:
        counter = find_counter()
        bench = Bench(Path(folder), stack, chosen.rounds, chosen.seconds, counter)
        rows = [ROWS[name] for name in chosen.only or ROWS]
        if counter is None and any(row in COUNTS for row in rows):
            print(MISSING, file=sys.stderr)
            rows = [row for row in rows if row not in COUNTS]
        return any([fell for row in rows async for fell in row(bench)])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
