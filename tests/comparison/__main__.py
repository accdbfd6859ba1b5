"""The same tasks through every way of chaining tools, measured on the same bank.

`run FILE` makes the runs that the file lacks: stopped, it goes on where the file ends. The model
is that of BANKING_MODEL_URL and BANKING_MODEL_NAME. `report FILE` writes the table of the file's
runs beside it, with `.md` for `.jsonl`, and draws the chart. Read `tasks`, `person`, `ways`, `runs`
and `report`, in this order.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

import anyio

from banking_server.agent import load_model_settings

from .report import charts, page
from .runs import make_all, plan, read


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Raises SystemExit for a mistake, or if the model's endpoint fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs that the file lacks")
    run.add_argument("file", type=Path)
    run.add_argument("--about", default="", help="quantisation and threads, kept with each run")
    report = commands.add_parser("report", help="write the table of the file's runs, and the chart")
    report.add_argument("file", type=Path)
    report.add_argument("--charts", type=Path, help="the folder for them; else beside the file")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.INFO)  # Of the servers, which are in this process.
    if chosen.command == "run":
        anyio.run(make_all, chosen.file, plan(), load_model_settings(), chosen.about)
    else:
        runs = read(chosen.file)
        chosen.file.with_suffix(".md").write_text(page(runs), encoding="utf-8")
        for name, drawing in charts(runs).items():
            folder = chosen.charts or chosen.file.parent
            (folder / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
