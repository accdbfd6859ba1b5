"""The load: a process that makes calls over kept connections, and looks at every answer.

`python -m banking_server.benchmark.load` reads a `Load` from standard input and writes what came of
it to standard output, both as JSON; `measure` runs it. It has to be a good deal faster than any
server here, so it sends bytes that were prepared, reads of HTTP only what it needs, and imports
nothing but the standard library and, where there is one, uvloop.
"""

import asyncio
import importlib
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

PATIENCE: Final = 60
"""Seconds after the end of a measurement that an answer may still take."""

SLOWEST_CALL: Final = 0.1
"""Seconds that each of a number of calls may take on average, before nobody waits any more."""

ANY_TRANSFER: Final = "tr_0000000000000000"
ANY_CODE: Final = "000000"
"""In a request: the transfer that the answer before named, and its confirmation code."""

_HANDED_ON: Final = re.compile(rb"code for transfer (tr_[0-9a-f]{16}) is (\d{6})\.")


class BenchmarkFailed(Exception):
    """Nothing can be measured; the message is one line for people."""


@dataclass(frozen=True)
class Step:
    """One request of a connection, which sends its steps in order and over again."""

    label: str
    """Under which name its latency is reported."""
    request: str
    """The whole HTTP request. It may hold `ANY_TRANSFER` and `ANY_CODE`."""
    expect: tuple[str, ...]
    """What a right answer holds, each in its body."""
    hands_on: bool = False
    """The answer names a transfer and its code, for the steps after it."""


@dataclass(frozen=True)
class Load:
    """What is sent: each connection has a list of steps, and one request under way at a time.

    It ends after `seconds`, when each connection has made its steps once, however long that takes;
    or when `calls` answers have come. One of the two is given.
    """

    ports: tuple[int, ...]
    """The servers' on this machine; the connections go to one after the other, round and round."""
    connections: tuple[tuple[Step, ...], ...]
    seconds: float | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Latency:
    """The answers to the steps of one label; latencies are in milliseconds."""

    calls: int
    p50: float
    p99: float


@dataclass(frozen=True)
class Measured:
    """What came of a load."""

    seconds: float
    labels: dict[str, Latency]
    wrong: int
    """Answers that were not the right one, or never came. They are in none of the figures."""
    first_wrong: str | None
    cpu: float
    """The share of one core that the load itself took."""

    def rate(self, label: str) -> float:
        """Return the right answers to the steps of this label, a second."""
        return self.labels[label].calls / self.seconds


def measure(load: Load) -> Measured:
    """Run a load in a process of its own. Raises `BenchmarkFailed`."""
    ended = subprocess.run(
        [sys.executable, "-m", "banking_server.benchmark.load"],
        input=json.dumps(asdict(load)),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if ended.returncode != 0:
        last = ended.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise BenchmarkFailed(f"The process that makes the calls failed: {last[0]}")
    told = json.loads(ended.stdout)
    labels = {label: Latency(**figures) for label, figures in told.pop("labels").items()}
    return Measured(labels=labels, **told)


class _Run:
    """What all connections of a load share."""

    def __init__(self, seconds: float | None, calls: int | None) -> None:
        self.latencies: dict[str, list[float]] = {}
        self.wrong = 0
        self.first_wrong: str | None = None
        self.left = calls
        self.seconds = seconds
        self.end = float("inf")
        self.last = 0.0

    def start(self) -> None:
        now = time.perf_counter()
        self.began = self.last = now
        self.cpu_began = time.process_time()
        if self.seconds is not None:
            self.end = now + self.seconds

    def may_send(self, first: bool) -> bool:
        if self.left is not None:
            self.left -= 1
            return self.left >= 0
        return first or time.perf_counter() < self.end

    def right(self, label: str, sent: float, first: bool) -> None:
        now = time.perf_counter()
        if first or now <= self.end:  # What comes later is looked at, but is not of this time.
            self.latencies.setdefault(label, []).append(now - sent)
            self.last = now

    def is_wrong(self, label: str, what: str) -> None:
        self.wrong += 1
        if self.first_wrong is None:
            self.first_wrong = f"{label}: {what}"


class _Prepared:
    """A step, as bytes."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.label: str = step["label"]
        self.request: bytes = step["request"].encode()
        self.expect: list[bytes] = [text.encode() for text in step["expect"]]
        self.hands_on: bool = step["hands_on"]
        self.takes = ANY_TRANSFER.encode() in self.request


class _Connection(asyncio.Protocol):
    """One connection: sends a step, takes the answer, sends the next."""

    def __init__(self, run: _Run, steps: Sequence[_Prepared], done: asyncio.Future[None]) -> None:
        self._run = run
        self._steps = steps
        self._made = 0
        self._first = True
        self._done = done
        self._received = b""
        self._handed: tuple[bytes, bytes] | None = None
        self._under_way: _Prepared | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def send(self) -> None:
        """Send the next step, or be done."""
        self._first = self._made < len(self._steps)
        if not self._run.may_send(self._first):
            self._stop()
            return
        step = self._steps[self._made % len(self._steps)]
        self._made += 1
        request = step.request
        if step.takes and self._handed:
            transfer, code = self._handed
            request = request.replace(ANY_TRANSFER.encode(), transfer)
            request = request.replace(ANY_CODE.encode(), code)
        self._under_way = step
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_ends = self._received.find(b"\r\n\r\n")
        if head_ends < 0:
            return
        head = self._received[:head_ends].lower()
        at = head.find(b"content-length:")
        if at < 0:
            self._fail("an answer without Content-Length")
            return
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self._received) < head_ends + 4 + length:
            return
        body = self._received[head_ends + 4 :]
        self._received = b""
        step = self._under_way
        if step is None or len(body) != length:
            self._fail("more than was asked for")
            return
        self._under_way = None
        right = head.startswith(b"http/1.1 200") and all(text in body for text in step.expect)
        if not right or (step.takes and self._handed and self._handed[0] not in body):
            self._fail(f"{head[9:12].decode()} {body[:400].decode(errors='replace')}", step)
            return
        if step.hands_on:
            found = _HANDED_ON.search(body)
            if found is None:
                self._fail("an answer without a confirmation code", step)
                return
            self._handed = (found[1], found[2])
        self._run.right(step.label, self._sent, self._first)
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._fail("the connection was closed")

    def _fail(self, what: str, step: _Prepared | None = None) -> None:
        """Note a wrong answer. The connection ends with it: what should follow is not known."""
        step = step or self._under_way
        self._run.is_wrong("?" if step is None else step.label, what)
        self._stop()

    def _stop(self) -> None:
        if not self._done.done():
            self._done.set_result(None)
        self._transport.close()


async def _run(load: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    run = _Run(load["seconds"], load["calls"])
    connections, done = [], []
    for steps, port in zip(load["connections"], itertools.cycle(load["ports"]), strict=False):
        prepared = [_Prepared(step) for step in steps]
        done.append(loop.create_future())
        made: Callable[[], _Connection] = lambda p=prepared, d=done[-1]: _Connection(run, p, d)  # type: ignore[misc] # noqa: E731
        _, connection = await loop.create_connection(made, "127.0.0.1", port)
        connections.append(connection)
    run.start()
    for connection in connections:
        connection.send()
    patience = PATIENCE + (run.seconds or 0) + (load["calls"] or 0) * SLOWEST_CALL
    _, late = await asyncio.wait(done, timeout=patience)
    for _ in late:
        run.is_wrong("?", f"no answer after {patience:g} seconds")
    seconds = max(run.last - run.began, run.seconds or 0)
    cpu = (time.process_time() - run.cpu_began) / (time.perf_counter() - run.began)
    return {
        "seconds": seconds,
        "labels": {label: _figures(found) for label, found in run.latencies.items()},
        "wrong": run.wrong,
        "first_wrong": run.first_wrong,
        "cpu": cpu,
    }


def _figures(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)

    def at(share: float) -> float:
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"calls": len(ordered), "p50": at(0.5), "p99": at(0.99)}


def _main() -> None:
    load = json.load(sys.stdin)
    try:
        loop_factory = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        loop_factory = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        print(json.dumps(runner.run(_run(load))))


if __name__ == "__main__":
    _main()
