"""What the benchmark runs on: the processor, the versions, and the disk."""

import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from banking_server.bank.driver import SQLITE_VERSION
from banking_server.benchmark.load import BenchmarkFailed

IN_MEMORY: Final = ("tmpfs", "ramfs")
_SYNCS: Final = 200


@dataclass(frozen=True)
class Machine:
    """What a figure depends on."""

    cores: int
    architecture: str
    python: str
    sqlite: str
    packages: dict[str, str]
    """What serves HTTP and how fast, where it is installed, with its version."""
    filesystem: str | None
    """The kind of file system that the databases are on; None where the system does not say."""
    fsync_ms: float
    """The median of one fsync there."""


def describe(folder: Path) -> Machine:
    """Return what the benchmark runs on; the databases are in `folder`."""
    packages = {}
    for name in ("mcp", "uvicorn", "uvloop", "httptools"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return Machine(
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        architecture=platform.machine(),
        python=platform.python_version(),
        sqlite=SQLITE_VERSION,
        packages=packages,
        filesystem=filesystem(folder),
        fsync_ms=fsync_ms(folder),
    )


def fsync_ms(folder: Path) -> float:
    """Return the median of appending 4 KiB to a file in `folder` and waiting for the disk."""
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(b"\0" * 4096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def folder_on_disk(wanted: Path | None) -> Path:
    """Return the folder for the databases: the one that is wanted, or one for temporary files.

    Raises `BenchmarkFailed` for a folder in memory: there, a commit waits for nothing.
    """
    if wanted is not None and not wanted.is_dir():
        raise BenchmarkFailed(f"{wanted} is not a folder.")
    folders = [wanted] if wanted else [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]  # noqa: S108
    for folder in folders:
        if os.access(folder, os.W_OK) and filesystem(folder) not in IN_MEMORY:
            return folder
    raise BenchmarkFailed(
        f"{folders[0]} is in memory or cannot be written to, and the disk is part of what is "
        "measured: name a folder on a disk with --folder."
    )


def filesystem(folder: Path) -> str | None:
    """Return the kind of file system that a folder is on, where the system has a list of them."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    except OSError:
        return None
    kind, longest = None, -1
    for line in mounts.splitlines():
        _, place, this, *_ = line.split(" ")
        path = Path(place.replace("\\040", " "))
        if folder.resolve().is_relative_to(path) and len(path.parts) >= longest:
            kind, longest = this, len(path.parts)
    return kind
