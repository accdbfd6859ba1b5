"""A bearer token for a trial of the HTTP server."""

from typing import Annotated

import typer

from banking_server.cli.at_the_bank import at_the_bank
from banking_server.cli.messages import CommandFailed, unknown_customer
from banking_server.cli.options import settings_of


def token(
    ctx: typer.Context,
    customer: Annotated[str, typer.Option(help="The customer in whose name the token acts.")],
) -> None:
    """Print a bearer token for a local trial over HTTP.

    It is valid for one hour, for reading and for moving money. Nothing else is printed.
    """
    from datetime import timedelta

    from banking_server.bank.accounts import list_customers
    from banking_server.server.build import utc_now
    from banking_server.server.tokens import Tokens, load_keys
    from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE

    settings = settings_of(ctx)
    if settings.issuer is not None:
        raise CommandFailed(
            f"This server accepts only the tokens of {settings.issuer}: get one there. To use "
            "tokens of this command for a local trial, unset BANKING_ISSUER."
        )
    if customer not in at_the_bank(settings, list_customers):
        raise unknown_customer(customer)
    scopes = [READ_SCOPE, TRANSFER_SCOPE]
    tokens = Tokens.of(settings, load_keys(settings))
    print(tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(hours=1)))
