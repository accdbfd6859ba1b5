"""What a trial of the server needs: a token."""

from typing import Annotated

import typer

from banking_server.cli.at_the_bank import at_the_bank
from banking_server.cli.messages import CommandFailed, unknown_customer
from banking_server.cli.options import DatabaseOption, settings_of


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
            help="The URL on loopback of the server it is for [BANKING_RESOURCE_URL]. Default: the "
            "one that this installation serves, on any port."
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
    if settings.issuer is not None:
        raise CommandFailed(
            f"This server takes the tokens of {settings.issuer} only, so ask there for one. "
            "Without BANKING_ISSUER, it takes its own for a trial on loopback."
        )
    if customer not in at_the_bank(settings, list_customers):
        raise unknown_customer(customer)
    minted = Tokens.of(settings, load_keys(settings)).mint(
        customer,
        list(dict.fromkeys(scopes)),
        now=utc_now(),
        lifetime=timedelta(seconds=settings.token_lifetime),
    )
    print(minted)
