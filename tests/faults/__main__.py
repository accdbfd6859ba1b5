"""What the books lose when servers are killed, disks fail and the power is cut: a table.

Customers pay without a pause, each acknowledgement is on the disk before it counts, and one fault
follows another. Then everything is started again, and the ledger is compared with what was written
down. Each run keeps its journal and its ledger in one folder. The exit code is 1 if something is
lost, doubled or wrong, and 2 if a run broke off, which is no result.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2

from ..kit import command
from ..kit.servers import HttpServer, http_server
from .books import ACCOUNTS, Journal, look
from .customers import Customer
from .stores import Postgres, SqliteFile

ARRANGEMENTS: dict[str, tuple[type[SqliteFile | Postgres], int, int]] = {
    "one server on SQLite": (SqliteFile, 1, 1),
    "two servers on one file": (SqliteFile, 2, 1),
    "one server with two workers": (SqliteFile, 1, 2),
    "three servers on PostgreSQL": (Postgres, 3, 1),
}
"""The store, how many servers, and how many workers each has."""

WRONG = (
    *("lost", "doubled", "done, but said not to be", "wrong reads", "wrong sums"),
    *("wrong kept totals", "faults that `database check` names"),
)
"""The columns that count what must not be."""

COLUMNS = (
    *("arrangement", "faults", "calls answered", "acknowledged postings"),
    *("calls of unknown effect", "reads", *WRONG),
)

DISK_FAULTS = {"full": "disk full", "readonly": "disk read-only", "failing": "fsync fails"}
"""By the names that `disk.c` has for them."""


class Run:
    """One arrangement, its customers and its faults."""

    def __init__(self, arrangement: str, folder: Path, *, control: bool = False) -> None:
        self.control = control
        store, self.servers_wanted, self.workers = ARRANGEMENTS[arrangement]
        folder.mkdir(parents=True)
        self.folder, self.store, self.journal = folder, store(folder), Journal(folder)
        # What a customer gives up must not be pending for long: only so many transfers may be.
        own = {"BANKING_SECRET": "s" * 40, "BANKING_TRANSFER_EXPIRY": "60"}
        self.settings = {**self.store.settings, **own}
        self.command("create")
        with closing(self.store.connect()) as ledger:
            before = {row[0]: row[1] for row in ledger.execute(ACCOUNTS).fetchall()}
        self.wrong: Counter[str] = Counter()
        self.servers: list[HttpServer] = []
        self.customers = [Customer(n, self.servers, self.journal, before) for n in (1, 2, 3)]

    def command(self, *words: str, **settings: str) -> None:
        done = command.run("database", *words, **{**self.settings, **settings})
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def to_the_end(self, seconds: float) -> dict[str, object]:
        """Let customers pay under faults for so long; return what is true then, by column."""
        try:
            with ExitStack() as self.stack:
                self.servers += [self.serve() for _ in range(self.servers_wanted)]
                with ThreadPoolExecutor() as threads:
                    try:
                        tasks = [each for c in self.customers for each in (c.pay, c.pay, c.watch)]
                        paying = [threads.submit(task) for task in tasks]
                        self.under_faults(time.monotonic() + seconds, paying)
                    finally:
                        for customer in self.customers:
                            customer.over.set()
                for each in paying:
                    each.result()
            checked = command.run("database", "check", **self.settings)
            with closing(self.store.connect()) as ledger:
                wrong, posted = look(ledger, self.journal)
        finally:
            self.store.end()
        unknown, repeated = set(self.journal.of("unknown")), set(self.journal.of("posted"))
        fates = {
            "repeated, and posted": len(unknown & repeated),
            "posted, as the ledger says": len(unknown & posted - repeated),
            "not posted": len(unknown - posted),
        }
        none = dict.fromkeys(WRONG, 0)
        return (
            none
            | (self.wrong + wrong)
            | {
                "faults": listed(Counter(name for name, *_ in self.journal.of("fault"))),
                "calls answered": len(self.journal.of("answered")),
                "acknowledged postings": len(repeated),
                "reads": len(self.journal.of("read")),
                "calls of unknown effect": listed(fates),
                "wrong reads": len(self.journal.of("wrong read")),
                "faults that `database check` names": checked.returncode
                and len(checked.stdout.splitlines()),
            }
        )

    def under_faults(self, end: float, paying: list[Future[None]]) -> None:
        """Let one fault follow another, each kind once at least, and start everything again."""
        kinds = [self.kill_server]
        if self.workers > 1:
            kinds.append(self.kill_worker)
        if isinstance(self.store, Postgres):
            kinds.append(self.kill_postgresql)
        else:
            kinds += [self.back_up, *[self.cut_power, self.break_disk] * 3 * self.store.disk]
        if self.control:
            kinds = [self.cut_power]
            self.store.switch("lying").touch()
        left = [*dict.fromkeys(kinds)]
        while left or time.monotonic() < end:
            time.sleep(random.uniform(0.3, 1.5))
            (left.pop() if left else random.choice(kinds))()
            for server in self.servers:
                assert server.process.poll() is None, f"{server.log} is of a server that ended"
            for each in paying:
                assert not each.done() or each.result()
        time.sleep(1)
        for server in self.servers:
            assert httpx2.get(f"http://127.0.0.1:{server.port}/health").is_success

    def serve(self) -> HttpServer:
        settings = {**self.settings, "BANKING_WORKERS": f"{self.workers}"}
        return self.stack.enter_context(http_server(self.folder, **settings))

    # --- the faults

    def kill(self, servers: list[HttpServer]) -> None:
        """Kill all processes of these servers."""
        for server in servers:
            os.killpg(server.process.pid, signal.SIGKILL)
        for server in servers:
            server.process.wait()

    def start(self, servers: list[HttpServer]) -> None:
        """Start other servers instead of these."""
        for server in servers:
            self.servers[self.servers.index(server)] = self.serve()

    def kill_server(self) -> None:
        killed = [random.choice(self.servers)]
        self.kill(killed)
        self.journal.write("fault", "servers killed")
        self.start(killed)

    def kill_worker(self) -> None:
        find = ["pgrep", "-f", "spawn_main", "-P", f"{self.servers[0].process.pid}"]
        workers = subprocess.run(find, capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(random.choice(workers)), signal.SIGKILL)
        self.journal.write("fault", "workers killed alone")

    def kill_postgresql(self) -> None:
        self.journal.write("fault", "PostgreSQL killed and started", self.store.kill())

    def cut_power(self) -> None:
        self.kill(self.servers)
        self.journal.write("fault", "power cuts", f"{self.store.cut_power()} writes undone")
        self.start([*self.servers])

    def break_disk(self) -> None:
        """Let the disk be full, read-only or broken for a while; perhaps a server dies of it."""
        fault, name = random.choice([*DISK_FAULTS.items()])
        self.store.switch(fault).touch()
        self.journal.write("fault", name)
        time.sleep(random.uniform(0.2, 2))
        killed = random.sample(self.servers, random.random() < 0.3)
        self.kill(killed)
        self.store.switch(fault).unlink()
        self.start(killed)

    def back_up(self) -> None:
        """Make a backup under load, restore it as another database, and look at that."""
        upto = self.journal.path.stat().st_size
        copy, restored = (Path(tempfile.mkdtemp(dir=self.folder), name) for name in "ab")
        self.command("backup", str(copy))
        self.command("restore", str(copy), "--yes", BANKING_DATABASE=str(restored))
        self.command("check", BANKING_DATABASE=str(restored))
        with closing(sqlite3.connect(restored)) as ledger:
            self.wrong += look(ledger, self.journal, upto)[0]
        self.journal.write("fault", "backups under load, restored")


def listed(counted: dict[str, int]) -> str:
    return "; ".join(f"{name}: {count}" for name, count in sorted(counted.items()) if count)


def main(*arguments: str) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="for all arrangements together")
    parser.add_argument("--only", choices=ARRANGEMENTS, metavar="ARRANGEMENT", help="one of these")
    parser.add_argument("--folder", type=Path, help="a new one, where each run keeps its files")
    control = "power cuts on a disk that lies about what is synced: a loss has to be seen"
    parser.add_argument("--control", action="store_true", help=control)
    chosen = parser.parse_args(arguments)
    names = [chosen.only] if chosen.only else [*ARRANGEMENTS]
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    codes = [0]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for name in names:
        row: dict[str, object] = {}
        try:
            run = Run(name, folder / name.replace(" ", "-"), control=chosen.control)
            row = run.to_the_end(60 * chosen.minutes / len(names))
            codes.append(int(any(row[column] for column in WRONG)))
        except Exception as error:
            row = {"faults": f"**broke off: no result**: {error!r}"}
            codes.append(2)
        cells = [str(row.get(column, "-")) for column in COLUMNS[1:]]
        print(f"| {' | '.join([name, *cells])} |", flush=True)
    print(f"\nThe journals and the ledgers are in {folder}.")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
