"""How fast the bank is, against a bare server of the SDK in the same run; databases are in TMPDIR.

First come instructions (`client`, `passing`, `starts`), which no neighbour on the machine
changes. Then come rates and waits: both servers are measured in turn within each round, so that
whatever else the machine does falls on both; figures are medians over the rounds. Every answer is
checked, and a wrong one ends the run. The last column is the recorded ratio. If a counted ratio
is now 5 % worse, or a measured one a fifth, the exit code is 1.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from mcp import Client

from banking_server.server.open_bank import utc_now

from ..kit import servers
from ..kit.command import command, environment
from ..kit.servers import HttpServer, http_client, http_server
from . import bare, instructions, one_client
from .load import (
    CUSTOMER,
    LOCKED,
    MANY,
    PAID_TO,
    Caller,
    Connections,
    Step,
    call,
    measure,
    of_the_bank,
)

CHAINS, PASSED, WARM = 60, 200, 60
"""Chains, and calls over stdio, whose instructions are counted; calls before the latter."""

PURE = {
    "PYTHONPATH": os.getcwd(),
    "PYTHONDONTWRITEBYTECODE": "",
    "COVERAGE_PROCESS_START": "",
}
"""Of each server's environment: compiled once, as what is installed is, without `kit/start`, which
spares tests the garbage collector, and not under coverage."""

Worse = AsyncIterator[bool]
"""Whether each line of a row is worse than the recorded ratio."""

Measurement = Callable[[float], Awaitable[float]]
"""Takes so many seconds, and returns a figure."""


class Bench:
    """What the rows have in common: servers, which run until the end."""

    def __init__(self, folder: Path, stack: ExitStack, rounds: int, seconds: float) -> None:
        self.folder, self._stack, self._rounds, self._seconds = folder, stack, rounds, seconds
        self._bank: HttpServer | None = None

    def bank(self) -> HttpServer:
        """Return a server with the demo data, which the first row that needs it starts."""
        if self._bank is None:
            self._bank = self._stack.enter_context(http_server(self.folder, **PURE))
        return self._bank

    def start(self, module: str, *arguments: str, **variables: str) -> int:
        """Start a module that serves HTTP at the port in its last argument, and return the port."""
        port = servers.free_port()
        words = [sys.executable, "-m", module, *arguments, str(port)]
        self._stack.enter_context(servers.serving_process(words, port, **PURE, **variables))
        return port

    async def rounds(self, other: Measurement, ours: Measurement) -> Sequence[tuple[float, float]]:
        """Make both measurements in turn, in each round, and once before, to warm up."""
        lengths = [1, *[self._seconds] * self._rounds]
        return [(await other(each), await ours(each)) for each in lengths][1:]


async def count(
    words: Sequence[str],
    request: bytes = b"",
    expected: str = "",
    *,
    times: int = 1,
    alone: bool = False,
    **variables: str,
) -> float:
    """Return the instructions of a command: see `instructions.count`."""
    env = environment(**PURE, **variables)
    counting = partial(instructions.count, words, env, request, expected, times=times, alone=alone)
    return await asyncio.to_thread(counting)


def line(
    what: str,
    against: str,
    rounds: Sequence[tuple[float, float]],
    better: Literal["more", "less"],
    was: float,
    margin: float = 0.2,
) -> bool:
    """Print a line of the table; return whether the ratio is worse than it `was` by more than the
    margin. `better` says which ratio is the better one, `rounds` what was measured: other, ours."""
    ratios = [ours / other for other, ours in rounds]
    other, ours = (f"{statistics.median(each):,.2f}" for each in zip(*rounds, strict=True))
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
    print(f"| {what} | {against}: {other} | {ours} | {spread} | {was:.2f} |", flush=True)
    return ratio < was * (1 - margin) if better == "more" else ratio > was / (1 - margin)


def counted(what: str, against: str, other: float, ours: float, was: float) -> bool:
    """Print a line about instructions; return whether the ratio is 5 % worse than it was."""
    return line(what, against, [(other, ours)], "less", was, margin=0.05)


def load(port: int, sent: Connections, label: str) -> Measurement:
    """Measure answers a second."""

    async def measured(seconds: float) -> float:
        began = time.perf_counter()
        answers = (await measure(port, sent, seconds))[label]
        return answers / (time.perf_counter() - began)

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


def caller(server: HttpServer) -> Caller:
    """Return what makes a customer's requests, with a token that lasts as long as all of it."""
    scopes, day = ["bank:read", "bank:transfer"], timedelta(days=1)
    return Caller(server.port, server.tokens.mint(CUSTOMER, scopes, now=utc_now(), lifetime=day))


async def client(bench: Bench) -> Worse:
    server = bench.bank()
    words = [sys.executable, "-m", one_client.__name__, server.url, caller(server).token]
    costs = [await count([*words, "0", "two"])]
    costs += [await count([*words, str(CHAINS), way]) for way in ("two", "chain")]
    two, chained = ((each - costs[0]) / CHAINS / 1e3 for each in costs[1:])
    what = "chain followed, 1,000 instructions of the client"
    yield counted(what, "two calls", two, chained, 1.1)


async def passing(bench: Bench) -> Worse:
    """What the proxy's own process needs for a call that no chain follows."""

    async def thousands(*words: str) -> float:
        few, many = [
            await count(words, call(bare.TOOL, {}), bare.SAYS, times=times, alone=True)
            for times in (WARM, WARM + PASSED)
        ]
        return (many - few) / PASSED / 1e3

    nothing = [sys.executable, "-m", bare.__name__]
    other = await thousands(*nothing)
    ours = await thousands(sys.executable, "-m", "tool_chaining_proxy", "--", *nothing)
    what = "plain call, 1,000 instructions of the proxy's process"
    yield counted(what, "bare, stdio", other, ours, 1.22)


async def starts(bench: Bench) -> Worse:
    async def millions(*words: str, tool: str = "", says: str = "") -> float:
        asked = call(tool, {}) if tool else b""
        return await count(words, asked, says, BANKING_DATABASE=file) / 1e6

    python, file = sys.executable, f"{bench.folder}/counted.db"
    bank = command("--customer", CUSTOMER)
    await millions(*bank, tool="list_accounts", says=LOCKED)  # It makes the database.
    bare_start = await millions(python, "-m", bare.__name__, tool=bare.TOOL, says=bare.SAYS)
    through = [python, "-m", "tool_chaining_proxy", "--trust-hints", "--", *bank]
    suite = [python, "-m", "tool_chaining_conformance", "--version"]
    for what, was, words, tool in (
        ("the bank, stdio, to its first answer", 1.53, bank, "list_accounts"),
        ("proxy and bank, to the first answer", 2.57, through, "list_accounts"),
        ("tool-chaining-conformance --version", 0.105, suite, ""),
        ("install cursor", 0.29, command("install", "cursor"), ""),
        ("handoffs", 0.77, command("handoffs"), ""),
    ):
        ours = await millions(*words, tool=tool, says=LOCKED if tool else "")
        yield counted(f"{what}, million instructions", "bare start", bare_start, ours, was)


async def http(bench: Bench) -> Worse:
    bank, rows = bench.bank(), of_the_bank(caller(bench.bank()))
    port = bench.start(bare.__name__)
    constant = Step("bare", Caller(port).request(bare.TOOL), (bare.SAYS,))
    other = load(port, [[constant]] * MANY, "bare")
    for row, what, label, was in (
        ("locked", "locked prepare", "prepare", 0.43),
        ("balance", "balance", "balance", 0.51),
        ("pair", "prepare and confirm, pairs", "confirm", 0.17),
    ):
        rounds = await bench.rounds(other, load(bank.port, rows[row], label))
        yield line(f"{what} a second, c = {MANY}", "bare", rounds, "more", was)


async def proxy(bench: Bench) -> Worse:
    server = bench.bank()
    token, arguments = caller(server).token, ["--url", server.url, "--http", "--port"]
    port = bench.start("tool_chaining_proxy", *arguments, MCP_TOKEN=token)

    async def balance(client: Client) -> None:
        result = await client.call_tool("get_account_balance", {"accountId": PAID_TO})
        assert PAID_TO in str(result.structured_content), result

    urls = (server.url, f"http://127.0.0.1:{port}/mcp")
    direct, proxied = (http_client(url, token, "auto") for url in urls)
    async with direct, proxied:
        ways = [repeated(partial(balance, client)) for client in (direct, proxied)]
        rounds = await bench.rounds(*ways)
    yield line("balance through the proxy, HTTP, p50 in ms", "direct", rounds, "less", 2.16)


COUNTS = (client, passing, starts)
ROWS = {each.__name__: each for each in (*COUNTS, http, proxy)}


async def main(*arguments: str) -> bool:
    """Print the table; return whether a ratio is worse than the recorded one."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--only", action="append", choices=ROWS, help="some lines; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    chosen = parser.parse_args(arguments)
    rows = [ROWS[name] for name in chosen.only or ROWS]
    if instructions.MISSING and any(row in COUNTS for row in rows):
        print(instructions.MISSING, file=sys.stderr)
        rows = [row for row in rows if row not in COUNTS]
    print("| measured | against | bank | ratio | rounds | was |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    with TemporaryDirectory(prefix="benchmark-") as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack, chosen.rounds, chosen.seconds)
        return any([worse for row in rows async for worse in row(bench)])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
