"""`banking-server benchmark`: measure how fast the bank is, on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.client import silence_libraries
from banking_server.cli.messages import CommandFailed, note

if TYPE_CHECKING:
    from banking_server.bank.location import URL


def benchmark(
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds; each measures the bank and what it is held against.")
    ] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of each measurement.")] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A row to measure; may be given several times. Default: all of them."),
    ] = None,
    calls: Annotated[
        int, typer.Option(min=2, help="Calls after which the server's memory is looked at again.")
    ] = 100_000,
    accounts: Annotated[
        int, typer.Option(help="Accounts of the large bank; its customers have ten each.")
    ] = 1_000_000,
    entries: Annotated[
        int, typer.Option(help="Its entries; a tenth of them is on one account.")
    ] = 10_000_000,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="A folder on the disk to measure on; what is made there is deleted afterwards. "
            "Default: the one for temporary files."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="An empty PostgreSQL database: measures one, two and three servers on it instead. "
            "What is made there is deleted afterwards."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the bank against a bare server of the SDK, in one run on this machine.

    Every answer that is counted is checked; where one is wrong, the row fails, and the exit code
    is 1.
    """
    from banking_server.bank.scale import Scale
    from banking_server.benchmark import report
    from banking_server.benchmark.load import BenchmarkFailed
    from banking_server.benchmark.rows import ROWS, ROWS_ON_POSTGRESQL
    from banking_server.benchmark.run import run_benchmark

    url = _postgresql(database)
    rows = ROWS if url is None else ROWS_ON_POSTGRESQL
    unknown = [name for name in only or () if name not in rows]
    if unknown:
        names = ", ".join(repr(name) for name in rows)
        raise typer.BadParameter(f"--only must be one of {names}; not {unknown[0]!r}")
    try:
        scale = Scale(accounts, entries)
    except ValueError as error:
        raise typer.BadParameter(f"--{error}") from None
    silence_libraries()
    try:
        measured = run_benchmark(
            [row for row in rows if not only or row in only],
            folder=folder,
            rounds=rounds,
            seconds=seconds,
            calls=calls,
            scale=scale,
            database=url,
            on_row=lambda row: note(f"Measuring {row} ..."),
        )
    except BenchmarkFailed as error:
        raise CommandFailed(str(error)) from None
    print(report.as_json(measured) if as_json else report.as_text(measured))
    if measured.has_failed:
        raise typer.Exit(1)


def _postgresql(database: str | None) -> "URL | None":
    from banking_server.bank.location import URL, read_location

    if database is None:
        return None
    try:
        location = read_location(database)
    except ValueError as error:
        raise typer.BadParameter(f"--database {error}") from None
    if not isinstance(location, URL):
        raise typer.BadParameter("--database must be a URL that begins with postgresql://")
    return location
