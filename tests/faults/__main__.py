"""What the books lose when servers are killed, disks fail and the power is cut: a table.

Customers pay without a pause, each acknowledgement is on the disk before it counts, and one fault
follows another. Then everything is started again, and the ledger is compared with what was written
down. Each run keeps its journal and its ledger in one folder. The exit code is 1 if something is
lost, doubled or wrong, and 2 if a run broke off, which is no result.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..kit import postgres
from .runs import OnPostgresql, OnSqlite, Run

ARRANGEMENTS: dict[str, Callable[[Path], Run]] = {
    "one server on SQLite": OnSqlite,
    "two servers on one file": lambda folder: OnSqlite(folder, servers=2),
    "one server with two workers": lambda folder: OnSqlite(folder, workers=2),
    "three servers on PostgreSQL": lambda folder: OnPostgresql(folder, servers=3),
}

WRONG = (
    *("lost", "doubled", "done, but said not to be", "wrong reads", "wrong sums"),
    *("wrong kept totals", "faults that `database check` names"),
)
"""What must not be."""
COLUMNS = (
    *("arrangement", "faults", "calls answered", "acknowledged postings", "reads"),
    *("calls of unknown effect", *WRONG),
)


def row_of(run: Run, seconds: float) -> dict[str, object]:
    """Do a run, and return what it says, by column."""
    posted, of = run.to_the_end(seconds), run.journal.of
    unknown, repeated = set(of("unknown")), set(of("posted"))
    fates = {
        "repeated, and posted": len(unknown & repeated),
        "posted, as the ledger says": len(unknown & posted - repeated),
        "not posted": len(unknown - posted),
    }
    return {
        **{column: run.wrong[column] for column in WRONG},
        "wrong reads": len(of("wrong read")),
        "faults": listed(Counter(name for name, *_ in of("fault"))),
        "calls answered": len(of("answered")),
        "acknowledged postings": len(repeated),
        "reads": len(of("read", "wrong read")),
        "calls of unknown effect": listed(fates),
    }


def listed(counted: dict[str, int]) -> str:
    return "; ".join(f"{name}: {count}" for name, count in sorted(counted.items()))


def main(*arguments: str) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="for all arrangements together")
    parser.add_argument("--only", choices=ARRANGEMENTS, metavar="ARRANGEMENT", help="one of these")
    parser.add_argument("--folder", type=Path, help="a new one, where each run keeps its files")
    control = "one server, on a disk that lies about what is synced: a loss has to be seen"
    parser.add_argument("--control", action="store_true", help=control)
    chosen = parser.parse_args(arguments)
    names = (
        [*ARRANGEMENTS][:1] if chosen.control else [chosen.only] if chosen.only else ARRANGEMENTS
    )
    whole = chosen.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    code = 0
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for name in names:
        folder = whole / name.replace(" ", "-")
        row: dict[str, object]
        try:
            if "PostgreSQL" in name and postgres.MISSING:
                row = {"faults": f"left out: {postgres.MISSING}"}
            else:
                folder.mkdir(parents=True)
                run = ARRANGEMENTS[name](folder)
                if chosen.control and isinstance(run, OnSqlite):
                    run.lie()
                row = row_of(run, 60 * chosen.minutes / len(names))
                code = max(code, any(row[column] for column in WRONG))
        except Exception as error:
            row, code = {"faults": f"**broke off, no result**: {error!r}"}, 2
        cells = [str(row.get(column, "-")) for column in COLUMNS[1:]]
        print(f"| {' | '.join([name, *cells])} |", flush=True)
    print(f"\nThe journals and the ledgers are in {whole}.")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
