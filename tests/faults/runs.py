"""One run: servers on one store, customers who pay, and one fault after another."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from ctypes import CDLL
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import psycopg

from banking_server.bank.file_watch import beside
from banking_server.bank.location import in_full

from ..kit import command
from ..kit.postgres import PostgresServer
from ..kit.servers import HttpServer, http_server
from .books import ACCOUNTS, Journal, happened, wrong_in
from .customers import Customer

DISK = Path(__file__).with_name("disk.c")
SETTINGS = {"BANKING_SECRET": "s" * 40, "BANKING_TRANSFER_EXPIRY": "60"}
"""What a customer gives up must not be pending for long: only so many transfers may be."""

NO_DISK = (
    None
    if sys.platform == "linux" and shutil.which("cc")
    else "complete, but for power cuts and faults of the disk: they need Linux and cc"
)
DISK_FAULTS = ("disk full", "disk read-only", "fsync fails")
"""As `disk.c` names them."""


class Run:
    """Servers that are killed. A subclass says where the books are, and what else can happen."""

    def __init__(self, folder: Path, settings: dict[str, str], servers: int, workers: int) -> None:
        self.folder, self.journal = folder, Journal(folder)
        self.settings = {**settings, **SETTINGS, "BANKING_WORKERS": f"{workers}"}
        self.kinds: list[Callable[[], None]] = [self.kill_server] * 2
        if workers > 1:
            self.kinds += [self.kill_worker] * 2
        self.database("create")
        self.found: Counter[str] = Counter()
        self.broke_off: Exception | None = None
        self.servers: list[HttpServer] = []
        self.count, self.over = servers, Event()

    def connect(self) -> Any:
        """Connect to the database, not through the bank."""
        raise NotImplementedError

    def end(self) -> None:
        """Stop what holds the ledger; it stays in the folder."""

    def database(self, *words: str, **settings: str) -> None:
        """Run a command of the bank's, which has to succeed."""
        done = command.run("database", *words, **{**self.settings, **settings})
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def to_the_end(self, seconds: float) -> Counter[str]:
        """Let customers pay under faults for so long, look at the books, and return what is so.

        If the run breaks off, `broke_off` is why, and the books are looked at all the same.
        """
        try:
            try:
                self.under_load(seconds)
            except Exception as error:
                self.broke_off = error
            return self.in_the_books()
        finally:
            self.end()

    def under_load(self, seconds: float) -> None:
        """Let customers pay under faults for so long."""
        with closing(self.connect()) as ledger:
            self.before = {row[0]: row[1] for row in ledger.execute(ACCOUNTS).fetchall()}
        with ExitStack() as self.stack, ThreadPoolExecutor(9) as threads:
            self.servers += [self.serve() for _ in range(self.count)]
            running = []
            for number in (1, 2, 3):
                who = Customer(number, self)
                running += [threads.submit(do) for do in (who.pay, who.pay, who.watch)]
            try:
                self.under_faults(time.monotonic() + seconds)
            finally:
                self.over.set()
            for each in running:
                each.result()
            self.after_the_last()

    def after_the_last(self) -> None:
        """Look at what else can be lost once the customers have stopped; the servers still run."""

    def in_the_books(self) -> Counter[str]:
        """Return what is wrong in the ledger, and what happened."""
        checked = command.run("database", "check", **self.settings)
        self.found["refused by `database check`"] += checked.returncode
        with closing(self.connect()) as ledger:
            # What the ledger has lost, a backup of it lacks too.
            wrong = self.found | wrong_in(ledger, self.journal)
            return wrong + happened(ledger, self.journal)

    def under_faults(self, end: float) -> None:
        """Let one fault follow another, each kind once at least, and start everything again."""
        left = [*dict.fromkeys(self.kinds)]
        while left or time.monotonic() < end:
            time.sleep(random.uniform(0.3, 1.5))
            for server in self.servers:
                assert server.process.poll() is None, f"the server of {server.log} has ended"
            (left.pop() if left else random.choice(self.kinds))()
            for place, server in enumerate(self.servers):
                if server.process.poll() is not None:
                    self.servers[place] = self.serve()
        self.last_second()
        for server in self.servers:
            assert httpx2.get(f"http://127.0.0.1:{server.port}/health").is_success, server.log

    def last_second(self) -> None:
        """Let the customers pay without a fault."""
        time.sleep(1)

    def serve(self) -> HttpServer:
        return self.stack.enter_context(http_server(self.folder, grouped=True, **self.settings))

    def kill_server(self) -> None:
        self.journal.write("servers killed")
        self.kill(random.choice(self.servers))

    def kill_worker(self) -> None:
        self.journal.write("a worker killed alone")
        find = ["pgrep", "-f", "spawn_main", "-P", f"{self.servers[0].process.pid}"]
        workers = subprocess.run(find, capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(random.choice(workers)), signal.SIGKILL)

    def kill(self, *servers: HttpServer) -> None:
        """Kill all processes of these servers, and wait until none is left."""
        for server in servers:
            os.killpg(server.process.pid, signal.SIGKILL)
        for server in servers:
            server.process.wait()
            with suppress(ProcessLookupError):
                while True:
                    os.killpg(server.process.pid, 0)
                    time.sleep(0.01)


class OnSqlite(Run):
    """In a file; if there is a C compiler, on the disk of `disk.c`."""

    def __init__(self, folder: Path, servers: int = 1, workers: int = 1) -> None:
        self.path, self.disk = folder / "bank.db", folder / "disk.so"
        settings = {"BANKING_DATABASE": str(self.path)}
        kinds: list[Callable[[], None]] = [self.back_up]
        if NO_DISK is None:
            build = ["cc", "-shared", "-fPIC", "-O2", "-o", str(self.disk), str(DISK)]
            subprocess.run(build, check=True)
            settings |= {"LD_PRELOAD": str(self.disk), "FAULTY_DATABASE": str(self.path)}
            kinds += [self.cut_power] * 3
            kinds += [partial(self.break_disk, fault) for fault in DISK_FAULTS]
        super().__init__(folder, settings, servers, workers)
        self.kinds += kinds

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def cut_power(self) -> None:
        """Kill every process, and take back each write that was not synced."""
        self.kill(*self.servers)
        files = (self.path, beside(self.path, "-wal"))
        writes = [CDLL(str(self.disk)).take_back(os.fsencode(file)) for file in files]
        assert min(writes) >= 0, "what was not synced cannot be taken back"
        beside(self.path, "-shm").unlink(missing_ok=True)  # It was in memory only.
        self.journal.write("power cuts", f"{sum(writes)} writes were not synced")

    def break_disk(self, fault: str) -> None:
        """Let the disk be full, read-only or broken for a while; perhaps more happens meanwhile."""
        switch = beside(self.path, f".{fault}")
        switch.touch()
        self.journal.write(fault)
        try:
            time.sleep(random.uniform(0.2, 2))
            if random.random() < 0.5:
                random.choice((self.kill_server, self.cut_power))()
        finally:
            switch.unlink()

    def lie(self) -> None:
        """From now on let nothing be synced, though the disk says so; only cut the power."""
        beside(self.path, ".fsync lies").touch()
        self.kinds = [self.cut_power]

    def back_up(self) -> None:
        """Make a backup under load, restore it as another database, and look at that."""
        acknowledged = self.journal.path.stat().st_size
        copy, restored = (Path(tempfile.mkdtemp(dir=self.folder), name) for name in "ab")
        try:
            self.database("backup", str(copy))
            self.database("restore", str(copy), "--yes", BANKING_DATABASE=str(restored))
            self.database("check", BANKING_DATABASE=str(restored))
        except AssertionError as refused:
            print(refused, file=sys.stderr)
            self.found["refused by `database check`"] += 1
            return
        with closing(sqlite3.connect(restored)) as ledger:
            self.found |= wrong_in(ledger, self.journal, upto=acknowledged)
        self.journal.write("backups under load, restored")

    def last_second(self) -> None:
        """Let a reader keep in the log what customers do now: no checkpoint takes it from there."""
        reader = self.stack.enter_context(closing(self.connect()))
        reader.execute("BEGIN")
        reader.execute(ACCOUNTS).fetchall()
        super().last_second()

    def after_the_last(self) -> None:
        self.back_up()

    def in_the_books(self) -> Counter[str]:
        """The same; in a file that cannot be read, all is lost."""
        try:
            return super().in_the_books()
        except sqlite3.DatabaseError as error:
            print(error, file=sys.stderr)
            acknowledged = {*self.journal.of("posted", "prepared")}
            return self.found | Counter({"acknowledged and lost": len(acknowledged)})


class OnPostgresql(Run):
    """In a database on a PostgreSQL server of its own, whose commits are on the disk."""

    def __init__(self, folder: Path, servers: int) -> None:
        self.server = PostgresServer(folder / "postgresql", lasting=True)
        self.server.start()
        self.url = in_full(self.server.create("bank"))
        super().__init__(folder, {"BANKING_DATABASE": self.url}, servers, workers=1)
        self.kinds += [self.kill_postgresql] * 2

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def kill_postgresql(self) -> None:
        """Kill PostgreSQL, and start it as soon as it can be."""
        self.journal.write("PostgreSQL killed and started")
        os.kill(self.server.pid(), random.choice((signal.SIGKILL, signal.SIGQUIT)))
        for _ in range(100):  # Its processes end one after the other.
            time.sleep(0.5)
            with suppress(subprocess.SubprocessError, psycopg.Error, AssertionError):
                self.server.start()
                self.connect().close()
                return
        raise AssertionError("PostgreSQL does not start")

    def end(self) -> None:
        self.server.stop()
