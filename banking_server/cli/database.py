"""The database: create, reset, check, back up and restore it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.bank_session import run_on_bank
from banking_server.cli.messages import CommandFailed, note
from banking_server.cli.options import YesOption, ask, example, settings_of

if TYPE_CHECKING:
    from banking_server.bank.storage import Bank
    from banking_server.server.settings import Settings

database_app = typer.Typer(
    help="Create, check, back up or restore the database.", no_args_is_help=True
)


@database_app.command("create", epilog=example("database create"))
def database_create(ctx: typer.Context) -> None:
    """Create the database and fill it with the demo data.

    A server's first start does the same, unless a secret exists already: then the database may
    have been lost.
    """
    from banking_server.bank.storage import DatabaseMissing

    settings = settings_of(ctx)
    try:
        run_on_bank(settings, _do_nothing)
    except DatabaseMissing:
        _make(settings)
    else:
        raise CommandFailed(
            f"{settings.database} already has a database. `banking-server database reset` "
            "empties it."
        )
    note(f"{settings.database} holds the demo data.")


@database_app.command("reset", epilog=example("database reset --yes"))
def database_reset(ctx: typer.Context, yes: YesOption = False) -> None:
    """Delete everything and load the demo data again."""
    from banking_server.bank.backup import delete_database

    settings = settings_of(ctx)
    where = _file_of(settings)
    ask(f"Delete everything in {where}?", yes=yes)
    delete_database(where)
    _make(settings)
    note(f"{where} holds only the demo data now.")


@database_app.command("check", epilog=example("database check"))
def database_check(ctx: typer.Context) -> None:
    """Check that the ledger adds up and the records agree.

    A server may be running. The command prints one line per fault, and exits with 1 if any.
    """
    from banking_server.bank.consistency_check import find_faults
    from banking_server.client.printing import console, say

    settings = settings_of(ctx)
    faults = run_on_bank(settings, find_faults)
    for fault in faults:
        say(console(sys.stdout), fault, style="red")
    if faults:
        raise typer.Exit(1)
    print(f"No faults were found in {settings.database}.")


@database_app.command("backup", epilog=example("database backup copy.db"))
def database_backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
) -> None:
    """Copy the database to FILE and check the copy.

    FILE must not exist yet. A server may be running. The secret is not copied.
    """
    from banking_server.bank.backup import back_up

    settings = settings_of(ctx)
    back_up(_file_of(settings), file.absolute())
    note(f"{file} is a copy of {settings.database}. The secret is not in it.")


@database_app.command("restore", epilog=example("database restore copy.db"))
def database_restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    yes: YesOption = False,
) -> None:
    """Replace the database with the backup in FILE.

    No server may have it open. The replaced database is kept in a file beside it.
    """
    from banking_server.bank.backup import restore
    from banking_server.server.open_bank import utc_now

    settings = settings_of(ctx)
    path = _file_of(settings)
    if not file.is_file():
        raise CommandFailed(f"There is no file {file}.")
    ask(f"Replace everything in {path} with the backup {file}?", yes=yes)
    kept = restore(path, file.absolute(), now=utc_now())
    note(f"{path} is restored from {file}.")
    if kept is not None:
        note(f"The old database is kept in {kept}. Delete it when you no longer need it.")


def _file_of(settings: "Settings") -> Path:
    """Return the database's SQLite file. Raises `CommandFailed` if it is not a file."""
    if not isinstance(settings.database, Path):
        raise CommandFailed(
            "This command is for SQLite files. For PostgreSQL use dropdb, pg_dump and pg_restore."
        )
    return settings.database


def _make(settings: "Settings") -> None:
    """Make the database and its secret file; if only the secret is left, the database was lost."""
    from banking_server.server.keys import load_keys

    run_on_bank(settings, _do_nothing, create=True)
    if isinstance(settings.database, Path):
        load_keys(settings)


async def _do_nothing(_: "Bank") -> None:
    """Do nothing more: opening a new database loads the demo data."""
