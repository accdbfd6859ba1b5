"""The same tasks through every way of chaining tools, measured on the same bank.

`python -m tests.comparison run runs.jsonl` makes the runs, and goes on where the file ends; the
model is that of BANKING_MODEL_URL and BANKING_MODEL_NAME, and without one only the ways that need
none are run. `python -m tests.comparison report runs.jsonl` prints the table that the file comes
to, and draws the chart beside it, runs.svg. Read `tasks`, `person`, `ways`, `runs` and `report`,
in this order.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

import anyio

from banking_server.agent import load_model_settings
from banking_server.agent.settings import is_configured

from .report import chart, table
from .runs import make_all, plan, read
from .ways import WITH_MODEL, Way


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Raises SystemExit for a mistake, or if the model's endpoint fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs that the file lacks")
    run.add_argument("file", type=Path)
    run.add_argument("--wordings", type=int, default=12, help="of each task, from the first")
    report = commands.add_parser(
        "report", help="print the table of the file's runs, draw the chart"
    )
    report.add_argument("file", type=Path)
    chosen = parser.parse_args(arguments)
    logging.disable(logging.INFO)  # Of the servers, which are in this process.
    if chosen.command == "run":
        settings = load_model_settings() if is_configured() else None
        possible = [way for way in Way if settings or way not in WITH_MODEL]
        anyio.run(make_all, chosen.file, plan(possible, chosen.wordings), settings)
    else:
        runs = read(chosen.file)
        print(table(runs))
        chosen.file.with_suffix(".svg").write_text(chart(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
