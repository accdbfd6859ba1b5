"""What the books lose when servers are killed, disks fail and the power is cut: a table.

Customers pay without a pause, each acknowledgement is on the disk before it counts, and one fault
follows another. Then everything is started again, and the ledger is compared with what was written
down. Each run keeps its journal and its ledger in one folder. If a run breaks off, its ledger is
compared all the same. The exit code is 1 if something is lost, doubled or wrong, and otherwise 2 if
a run broke off, which is no result.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ..kit import postgres
from .runs import DISK_FAULTS, NO_DISK, OnPostgresql, OnSqlite, Run

ARRANGEMENTS: dict[str, Callable[[Path], Run]] = {
    "one server on SQLite": OnSqlite,
    "two servers on one file": lambda folder: OnSqlite(folder, servers=2),
    "one server with two workers": lambda folder: OnSqlite(folder, workers=2),
    "three servers on PostgreSQL": lambda folder: OnPostgresql(folder, servers=3),
}

WRONG = (
    "acknowledged and lost",
    "doubled",
    "done, but said not to be",
    "wrong reads",
    "wrong sums",
    "wrong kept totals",
    "refused by `database check`",
)
"""The rows that have to be 0."""
ROWS = (
    "result",
    "servers killed",
    "a worker killed alone",
    "PostgreSQL killed and started",
    "power cuts",
    *DISK_FAULTS,
    "backups under load, restored",
    "clients gone in a confirm",
    "calls answered",
    "reads checked",
    "postings acknowledged",
    "unknown, repeated: posted",
    "unknown, left: posted",
    "unknown, left: not posted",
    *WRONG,
)


def main(*arguments: str) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="for all arrangements together")
    parser.add_argument("--only", choices=ARRANGEMENTS, metavar="ARRANGEMENT", help="one of these")
    parser.add_argument("--folder", type=Path, help="a new one, where each run keeps its files")
    control = "one server, on a disk that lies about what is synced: a loss has to be seen"
    parser.add_argument("--control", action="store_true", help=control)
    chosen = parser.parse_args(arguments)
    names = [chosen.only] if chosen.only else list(ARRANGEMENTS)[: 1 if chosen.control else None]
    whole = chosen.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    columns: list[Mapping[str, object]] = []
    code = 0
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        folder = whole / name.replace(" ", "-")
        if "PostgreSQL" in name and postgres.MISSING:
            columns.append({"result": f"left out: {postgres.MISSING}"})
            continue
        try:
            folder.mkdir(parents=True)
            run = ARRANGEMENTS[name](folder)
            if chosen.control and isinstance(run, OnSqlite):
                run.lie()
            found = run.to_the_end(60 * chosen.minutes / len(names))
            result = (isinstance(run, OnSqlite) and NO_DISK) or "complete"
            if run.broke_off is not None:
                result = f"**broke off**: {run.broke_off!r}; {last_line(folder)}"
                print(result, file=sys.stderr)
                code = code or 2
            columns.append({"result": result, **dict.fromkeys(WRONG, 0), **found})
            code = 1 if any(found[row] for row in WRONG) else code
        except Exception as error:
            columns.append({"result": f"**broke off, no result**: {error!r}"})
            print(columns[-1]["result"], file=sys.stderr)
            code = code or 2
    print(f"| | {' | '.join(names)} |\n|{' --- |' * (1 + len(names))}")
    for row in ROWS:
        print(f"| {row} | {' | '.join(str(column.get(row, '-')) for column in columns)} |")
    print(f"\nThe journals and the ledgers are in {whole}.")
    return code


def last_line(folder: Path) -> str:
    """Return what the server that was started last wrote last."""
    logs = sorted(folder.glob("server-*.log"), key=lambda log: log.stat().st_mtime)
    lines = logs[-1].read_text(errors="replace").split("\n") if logs else []
    return f"a log ends: {next(filter(None, reversed(lines)), '')}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
