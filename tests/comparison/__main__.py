"""The same tasks through every way of chaining tools, measured on the same bank.

Read `tasks`, `person`, `ways`, `runs` and `report`, in this order.
"""

import logging
from pathlib import Path

import anyio
import typer

from banking_server.client.agent.settings import load_model_settings

from . import report, runs

app = typer.Typer(help=__doc__, add_completion=False)


@app.command("run")
def make(file: Path, about: str = "") -> None:
    """Make the runs that FILE lacks, with the model of BANKING_MODEL_URL and BANKING_MODEL_NAME.

    `--about` says of the endpoint what it does not say itself: quantisation and threads.
    """
    logging.disable(logging.INFO)  # Of the servers, which are in this process.
    anyio.run(runs.make_all, file, runs.plan(), load_model_settings(), about)


@app.command("report")
def write(file: Path) -> None:
    """Write the table of FILE's runs beside it, as Markdown."""
    file.with_suffix(".md").write_text(report.page(runs.read(file)), encoding="utf-8")


if __name__ == "__main__":
    app()
