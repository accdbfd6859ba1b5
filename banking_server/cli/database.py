"""The database itself: made, emptied, checked, copied and put back."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.at_the_bank import at_the_bank
from banking_server.cli.messages import CommandFailed, note
from banking_server.cli.options import JsonOption, YesOption, ask, settings_of

if TYPE_CHECKING:
    from banking_server.bank.storage import Bank
    from banking_server.server.settings import Settings

database_app = typer.Typer(help="The database.", no_args_is_help=True)


@database_app.command("create")
def database_create(ctx: typer.Context) -> None:
    """Make the database, filled with the demo data, where there is none.

    The first start does so by itself, but not if a secret is there already: then there may have
    been a database, too.
    """
    from banking_server.bank.storage import DatabaseMissing

    settings = settings_of(ctx)
    try:
        at_the_bank(settings, _do_nothing)
    except DatabaseMissing:
        _make(settings)
    else:
        raise CommandFailed(f"There is a database at {settings.database} already.")
    note(f"{settings.database} holds the demo data.")


@database_app.command("reset")
def database_reset(ctx: typer.Context, yes: YesOption = False) -> None:
    """Delete the database, with everything that happened in it, and load the demo data anew."""
    from banking_server.bank.backup import delete_database

    settings = settings_of(ctx)
    where = _file_of(settings)
    ask(f"Delete everything in {where}?", yes=yes)
    delete_database(where)
    _make(settings)
    note(f"{where} holds the demo data again, and nothing else.")


@database_app.command("check")
def database_check(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Check that everything in the database is as it must be; a server may go on meanwhile.

    Every fault is one line, and the exit code is then 1.
    """
    from banking_server.bank.consistency_check import find_faults
    from banking_server.host.printing import console, say
    from banking_server.server.build import utc_now

    settings = settings_of(ctx)
    faults = at_the_bank(settings, lambda bank: find_faults(bank, utc_now()))
    if as_json:
        print(json.dumps({"database": str(settings.database), "faults": faults}))
    elif faults:
        for fault in faults:
            say(console(sys.stdout), fault, style="red")
    else:
        print(f"All is well with {settings.database}.")
    if faults:
        raise typer.Exit(1)


@database_app.command("backup")
def database_backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A new file; there must be none of this name.")],
) -> None:
    """Copy the database to a new file, and check the copy; a server may go on meanwhile.

    The secret is not in it.
    """
    from banking_server.bank.backup import back_up

    settings = settings_of(ctx)
    back_up(_file_of(settings), file.absolute())
    note(f"{file} holds a copy of {settings.database}; its secret is not in it.")


@database_app.command("restore")
def database_restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `database backup` wrote.")],
    yes: YesOption = False,
) -> None:
    """Put a copy in the place of the database, which no server may have open."""
    from banking_server.bank.backup import restore
    from banking_server.server.build import utc_now

    settings = settings_of(ctx)
    path = _file_of(settings)
    if not file.is_file():
        raise CommandFailed(f"There is no file {file}.")
    ask(f"Replace everything in {path} with what {file} holds?", yes=yes)
    kept = restore(path, file.absolute(), now=utc_now())
    note(f"{path} holds what was in {file}.")
    if kept is not None:
        note(f"What it held before is in {kept}; delete that when it is not needed.")


def _file_of(settings: "Settings") -> Path:
    """Return the database, which is a SQLite file. Raises `CommandFailed` if it is not."""
    if not isinstance(settings.database, Path):
        raise CommandFailed(
            "This is for SQLite files; PostgreSQL has its own dropdb, pg_dump and pg_restore."
        )
    return settings.database


def _make(settings: "Settings") -> None:
    """Make the database, and its secret file: where that is, a database is missed if it is gone."""
    from banking_server.server.tokens import load_keys

    at_the_bank(settings, _do_nothing, create=True)
    if isinstance(settings.database, Path):
        load_keys(settings)


async def _do_nothing(_: "Bank") -> None:
    """Do nothing more: opening a new database loads the demo data."""
