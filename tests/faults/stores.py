"""Where the books are: a file on a disk that fails, or a PostgreSQL server that can be killed."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from ctypes import CDLL
from pathlib import Path
from typing import Any

import psycopg

from banking_server.bank.file_watch import beside
from banking_server.bank.location import in_full

from ..kit.command import PATIENCE
from ..kit.postgres import PostgresServer

DISK = Path(__file__).with_name("disk.c")


class SqliteFile:
    """A SQLite file; if there is a C compiler, on the disk of `disk.c`."""

    disk = sys.platform == "linux" and shutil.which("cc") is not None

    def __init__(self, folder: Path, name: str = "bank.db") -> None:
        self.path, self._built = folder / name, folder / "disk.so"
        self.settings = {"BANKING_DATABASE": str(self.path)}
        if self.disk:
            command = ["cc", "-shared", "-fPIC", "-O2", "-o", self._built, DISK]
            subprocess.run(command, check=True)
            self.settings |= {"LD_PRELOAD": str(self._built), "FAULTY_DATABASE": str(self.path)}

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def switch(self, fault: str) -> Path:
        """Return the file that is there as long as the disk has this fault."""
        return beside(self.path, f".{fault}")

    def cut_power(self) -> int:
        """Take back what was not synced; return how many writes. No process has the file open."""
        files = (self.path, beside(self.path, "-wal"))
        writes = [CDLL(str(self._built)).take_back(os.fsencode(file)) for file in files]
        assert min(writes) >= 0, "what was not synced cannot be taken back"
        beside(self.path, "-shm").unlink(missing_ok=True)  # It was in memory only.
        return sum(writes)

    def end(self) -> None:
        """Leave the file: it is the ledger."""


class Postgres:
    """A database on a PostgreSQL server of its own, whose commits are on the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = PostgresServer(folder / "postgresql", lasting=True)
        self.server.start()
        self.url = in_full(self.server.create("bank"))
        self.settings = {"BANKING_DATABASE": self.url}

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def kill(self) -> str:
        """Kill the server, and start it; return how."""
        how = random.choice((signal.SIGKILL, signal.SIGQUIT))
        os.kill(self.server.pid(), how)
        end = time.monotonic() + PATIENCE
        while True:  # Its processes end one after the other.
            time.sleep(0.5)
            try:
                self.server.start()
                self.connect().close()
            except (subprocess.SubprocessError, psycopg.Error, AssertionError):
                if time.monotonic() > end:
                    raise
            else:
                return how.name

    def end(self) -> None:
        """Keep a dump of the ledger, and nothing else."""
        self.server.run("pg_dump", f"--dbname={self.url}", f"--file={self.folder / 'ledger.sql'}")
        self.server.stop()
        shutil.rmtree(self.folder / "postgresql")
