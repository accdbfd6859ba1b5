"""`banking-server serve`, which is also the default without a command: serve MCP."""

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banking_server.cli.messages import CommandFailed, codes_in_words, note, unknown_customer
from banking_server.cli.options import CodesOption, CustomerOption, DatabaseOption, settings_of

if TYPE_CHECKING:
    from banking_server.server.settings import Settings


def serve(
    ctx: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of stdio.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="HTTP address [BANKING_HOST, else 127.0.0.1]."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="HTTP port [BANKING_PORT, else 8000]."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Server processes [BANKING_WORKERS, else 1]."),
    ] = None,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
    codes: CodesOption = None,
) -> None:
    """Serve MCP over stdio, or over HTTP with --http."""
    if http:
        if customer is not None:
            raise typer.BadParameter(
                "--customer is for stdio; over HTTP the bearer token names the customer"
            )
        options = {"database": database, "codes": codes}
        _serve_http(settings_of(ctx, host=host, port=port, workers=workers, **options))
    elif (host, port, workers) != (None, None, None):
        raise typer.BadParameter("--host, --port and --workers need --http")
    else:
        serve_stdio(ctx, database=database, customer=customer, codes=codes)


def serve_stdio(ctx: typer.Context, **options: Any) -> None:
    """Serve one customer over standard input and output, until the input ends.

    Raises `CommandFailed`, `DatabaseUnavailable`, `SecretUnavailable` or `SettingsError`.
    """
    # The objects of a start stay: searching them for garbage takes a quarter of its time.
    gc.disable()
    import signal

    import anyio

    from banking_server.server.build import build_server, check_before_serving, configure_logging
    from banking_server.server.stdio import serve_stdio as serve_lines

    settings = settings_of(ctx, **options)
    configure_logging(settings.log_level)
    customer = _one_of(anyio.run(check_before_serving, settings), settings.customer)
    server = build_server(settings, customer=customer)
    rules = settings.rules(over_stdio=True)
    if rules.codes == "result":
        note(f"Confirmation codes: {codes_in_words(rules)}")
    gc.freeze()
    gc.enable()
    # A thread that waits for input cannot be interrupted, so exit at once, without cleaning up.
    # Nothing is lost: a transaction is in the database completely, or not at all.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    if sys.stdin.isatty():
        note(
            "Waiting for MCP messages on standard input: an MCP host sends them. "
            "`banking-server demo` shows what the server does. Ctrl-C ends it."
        )
    anyio.run(serve_lines, server)


def _one_of(customers: Sequence[str], chosen: str | None) -> str:
    """Return the customer to serve: the chosen one, else the first. Raises `CommandFailed`."""
    if chosen is not None:
        if chosen not in customers:
            raise unknown_customer(chosen)
        return chosen
    if not customers:
        raise CommandFailed("The bank has no customers.")
    note(f"Serving customer {customers[0]} (choose another with --customer).")
    return customers[0]


def _serve_http(settings: "Settings") -> None:
    import anyio

    from banking_server.server.build import check_before_serving, configure_logging
    from banking_server.server.serving import listen, serve

    configure_logging(settings.log_level)
    anyio.run(check_before_serving, settings)
    listen(settings.host, settings.port).close()  # Fails in one line.
    note(f"Serving MCP at {settings.resource} (bound to {settings.host}). Ctrl-C ends it.")
    if not settings.on_loopback:
        note(
            "Other computers can reach it. It has no TLS, and no limits on requests (of a customer "
            "or an address), on connections, or on their time: put a reverse proxy in front of it "
            "that adds them. banking_server/server/README.md has the lines for Caddy and nginx."
        )
    note(f"Confirmation codes: {codes_in_words(settings.rules())}")
    os.environ.update(settings.environment())
    serve("banking_server.server.http:http_app_from_environment", settings)
