"""How fast the bank is, against a bare server of the SDK in the same run; databases are in TMPDIR.

Both are measured in turn within each round, so that whatever else the machine does falls on both;
figures are medians over the rounds. Every answer is looked at: a wrong one ends it. Beside its
bound stands the ratio that a row once reached; if one is now a fifth worse, the exit code is 1.
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
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp import Client, StdioServerParameters

from banking_server.server.open_bank import utc_now
from tool_chaining import FollowNonDestructive, call_tool_with_chaining

from ..kit import servers
from ..kit.command import command, environment
from ..kit.servers import HttpServer, http_client, http_server, stdio_client
from . import bare, scale
from .load import Caller, Connections, Step, call, measure

CUSTOMER, LOCKED, PAID_TO = "CUST001", "acc_checking_001", "acc_savings_001"
PAGES = "acc_everyday_001"  # Has more than a page of history.
MONEY = {"fromAccountId": LOCKED, "toAccountId": PAID_TO, "amount": 250}
MANY, CALLS, ENTRIES = 16, 100_000, 10_000_000

PURE = {"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": ""}
"""Of each server's environment: compiled once, as what is installed is, and without `kit/start`,
which spares tests the garbage collector."""

Fell = AsyncIterator[bool]
"""Whether each line of a row fell by a fifth."""

Measurement = Callable[[float], Awaitable[float]]
"""Takes so many seconds, and returns a figure."""

Rounds = Sequence[tuple[float, float]]
"""What was measured in each: the other, ours."""


class Bench:
    """What the rows have in common: servers, each started when the first row needs it."""

    def __init__(self, folder: Path, stack: ExitStack, rounds: int, seconds: float) -> None:
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
        started = subprocess.Popen(words, env=environment(**PURE, **variables))
        process = self._stack.enter_context(started)
        self._stack.callback(process.terminate)
        servers.wait_until_up(f"http://127.0.0.1:{port}/mcp", process)
        return port

    async def rounds(self, other: Measurement, ours: Measurement) -> Rounds:
        """Make both measurements in turn, in each round, and once before, to warm up."""
        lengths = [1, *[self._seconds] * self._rounds]
        return [(await other(each), await ours(each)) for each in lengths][1:]


def line(what: str, against: str, rounds: Rounds, must_be: str, bound: float, was: float) -> bool:
    """Print a line of the table; return whether the ratio is a fifth worse than it `was`."""
    ratios = [ours / other for other, ours in rounds]
    other, ours = (f"{statistics.median(each):,.2f}" for each in zip(*rounds, strict=True))
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
    is_met = ratio >= bound if must_be == "≥" else ratio <= bound
    must = f"{must_be} {bound:.2f}{'' if is_met else ': missed'} | {was:.2f}"
    print(f"| {what} | {against}: {other} | {ours} | {spread} | {must} |", flush=True)
    return ratio < was * 0.8 if must_be == "≥" else ratio > was / 0.8


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


async def http(bench: Bench) -> Fell:
    bank, one = bench.bank(), caller(bench.bank())
    port = bench.start(bare.__name__)
    constant = Step("bare", Caller(port).request(bare.TOOL), (bare.SAYS,))
    locked = one.locked_prepare(**MONEY)
    moves = [one.to_and_fro(PAID_TO, PAGES, f"connection {number}") for number in range(MANY)]
    other = load(port, [[constant]] * MANY, "bare")
    plain = replace(one, declares=False).locked_prepare(fromAccountId=LOCKED, amount=250)
    for what, sent, label, bound, was in (
        ("locked prepare", [[locked]] * MANY, "prepare", 0.55, 0.43),
        ("balance", [[one.balance(PAID_TO)]] * MANY, "balance", 0.55, 0.51),
        ("locked prepare, undeclared, no destination", [[plain]] * MANY, "prepare", 0.40, 0.37),
        ("prepare and confirm, pairs", moves, "confirm", 0.20, 0.17),
    ):
        rounds = await bench.rounds(other, load(bank.port, sent, label))
        yield line(f"{what} a second, c = {MANY}", "bare", rounds, "≥", bound, was)

    with (bench.folder / "synced").open("wb", buffering=0) as file:

        async def sync() -> None:
            file.write(bytes(4096))
            os.fsync(file.fileno())

        async def bounded(seconds: float) -> float:
            constant_p50 = await load(port, [[constant]], "bare", 50)(seconds)
            return constant_p50 + await repeated(sync)(seconds / 10) + 1

        rounds = await bench.rounds(bounded, load(bank.port, [[locked]], "prepare", 50))
        yield line("locked prepare, c = 1, p50 in ms", "bare + fsync + 1", rounds, "≤", 0.85, 0.83)


async def chain(bench: Bench) -> Fell:
    first, second = "prepare_money_transfer", "request_agent_handoff"
    server = bench.bank()
    async with http_client(server.url, caller(server).token, "auto") as client:

        async def followed() -> None:
            consent = FollowNonDestructive()
            found = await call_tool_with_chaining(client, first, MONEY, consent=consent)
            assert [step.tool for step in found.steps] == [first, second], found

        async def two_calls() -> None:
            one = await client.call_tool(first, MONEY)
            two = await client.call_tool(second, (one.meta or {})["nextTool"]["arguments"])
            assert not two.is_error, two

        rounds = await bench.rounds(repeated(two_calls), repeated(followed))
        yield line("chain followed, p50 in ms", "two calls", rounds, "≤", 1.05, 1.61)


async def stdio(bench: Bench) -> Fell:
    async def first_answer(tool: str, says: str, words: Sequence[str]) -> None:
        pipe, env = subprocess.PIPE, environment(**PURE)
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=env) as process:
            os.write(process.stdin.fileno(), call(tool, {}) + b"\n")
            answer = process.stdout.readline().decode()
            process.kill()
        assert says in answer, answer

    bank = command("--database", f"{bench.folder}/stdio.db", "--customer", CUSTOMER)
    nothing = [sys.executable, "-m", bare.__name__]
    other = repeated(partial(first_answer, bare.TOOL, bare.SAYS, nothing))
    ours = repeated(partial(first_answer, "list_accounts", LOCKED, bank))
    rounds = await bench.rounds(other, ours)
    yield line("stdio, start to first answer in ms", "bare", rounds, "≤", 1.45, 1.46)


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
    yield line(f"memory after {CALLS:,} calls, MiB", "after a hundredth", [grown], "≤", 1.10, 1.03)


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
        yield line(what, "10,000 entries", rounds, "≤", 1.20, 1.10)
    alone = [caller(large, scale.NEIGHBOUR).balance(scale.THEIRS)]
    reader = [caller(large, scale.SOMEBODY).statement(scale.BUSY)]
    ways = [load(large.port, sent, "balance", 99) for sent in ([alone], [alone, *[reader] * 4])]
    what = "another customer, p99 in ms, beside four readers of the busy account"
    yield line(what, "alone", await bench.rounds(*ways), "≤", 2.00, 2.99)


async def proxy(bench: Bench) -> Fell:
    server = bench.bank()
    token, arguments = caller(server).token, ["--url", server.url, "--http", "--port"]
    port = bench.start("tool_chaining.proxy", *arguments, MCP_TOKEN=token)
    database = bench.folder / "piped.db"
    args = ["-m", "tool_chaining.proxy", "--", *command("--database", str(database))]
    through = StdioServerParameters(command=sys.executable, args=args, env=environment())

    async def balance(client: Client) -> None:
        result = await client.call_tool("get_account_balance", {"accountId": PAID_TO})
        assert PAID_TO in str(result.structured_content), result

    url = f"http://127.0.0.1:{port}/mcp"
    for over, was, *both in (
        ("HTTP", 1.49, http_client(server.url, token, "auto"), http_client(url, "any", "auto")),
        ("stdio", 1.60, stdio_client(database, "auto"), Client(through)),
    ):
        async with both[0], both[1]:
            rounds = await bench.rounds(*(repeated(partial(balance, each)) for each in both))
        yield line(f"balance by proxy, {over}, p50 in ms", "direct", rounds, "≤", 1.60, was)


ROWS = {each.__name__: each for each in (http, chain, stdio, memory, at_scale, proxy)}


async def main(*arguments: str) -> bool:
    """Print the table; return whether a ratio fell by a fifth."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--only", action="append", choices=ROWS, help="some lines; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    chosen = parser.parse_args(arguments)
    print("| measured | against | bank | ratio | rounds | must be | was |")
    print("| --- | ---: | ---: | ---: | --- | --- | ---: |")
    with TemporaryDirectory(prefix="benchmark-") as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack, chosen.rounds, chosen.seconds)
        return any([fell for name in chosen.only or ROWS async for fell in ROWS[name](bench)])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
