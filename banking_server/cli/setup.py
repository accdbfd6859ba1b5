"""What a trial of the server needs: a token, and the database file."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.at_the_bank import at_the_bank
from banking_server.cli.messages import CommandFailed, note, unknown_customer
from banking_server.cli.options import DatabaseOption, settings_of

if TYPE_CHECKING:
    from banking_server.bank.storage import Bank

database_app = typer.Typer(help="The database file.", no_args_is_help=True)


def token(
    ctx: typer.Context,
    customer: Annotated[str, typer.Option(help="The customer that the token speaks for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="bank:read or bank:transfer; may be given twice. Default: both."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="The URL of the server it is for [BANKING_RESOURCE_URL]. Default: the one that "
            "this installation serves on loopback, on any port."
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Mint a bearer token for a local trial of the HTTP server, and print nothing else."""
    from datetime import timedelta

    from banking_server.bank.accounts import list_customers
    from banking_server.server.build import utc_now
    from banking_server.server.tokens import Tokens, load_keys
    from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE

    scopes = scope or [READ_SCOPE, TRANSFER_SCOPE]
    unknown = [name for name in scopes if name not in (READ_SCOPE, TRANSFER_SCOPE)]
    if unknown:
        raise typer.BadParameter(f"--scope is {READ_SCOPE} or {TRANSFER_SCOPE}, not {unknown[0]!r}")
    settings = settings_of(ctx, resource_url=url, database=database)
    if customer not in at_the_bank(settings, list_customers):
        raise unknown_customer(customer)
    minted = Tokens.of(settings, load_keys(settings)).mint(
        customer,
        list(dict.fromkeys(scopes)),
        now=utc_now(),
        lifetime=timedelta(seconds=settings.token_lifetime),
    )
    print(minted)


@database_app.command("path")
def database_path(ctx: typer.Context, database: DatabaseOption = None) -> None:
    """Print where the database file is."""
    print(settings_of(ctx, database=database).database)


@database_app.command("reset")
def database_reset(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Delete the database, with everything that happened in it, and load the demo data anew."""
    from banking_server.bank.sqlite_file import delete_database

    settings = settings_of(ctx, database=database)
    path = settings.database
    if not yes:
        if not sys.stdin.isatty():
            raise CommandFailed("Nobody is here to be asked; --yes resets the database unasked.")
        typer.confirm(f"Delete everything in {path}?", abort=True, err=True)
    delete_database(path)
    at_the_bank(settings, _load_demo_data)
    note(f"{path} holds the demo data again, and nothing else.")


async def _load_demo_data(_: "Bank") -> None:
    """Do nothing more: opening a new database loads the demo data."""
