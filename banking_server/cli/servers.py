"""The servers that `call`, `tools` and `chat` use: which ones, and how to connect to them."""

import os
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import typer

from tool_chaining.text import one_line
from tool_chaining.urls import TOKEN_VARIABLE

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    from banking_server.client.questions import TerminalQuestions


def chosen_server(
    ctx: typer.Context,
    url: str | None,
    command: list[str] | None,
    database: str | None,
    customer: str | None,
) -> "str | StdioServerParameters":
    """Return the one server that a command calls: by default this one."""
    if url and command:
        raise typer.BadParameter("give either --url or a command, not both")
    [server] = chosen_servers(ctx, [url] if url else [], command, database, customer)
    return server


def chosen_servers(
    ctx: typer.Context,
    urls: Sequence[str],
    command: list[str] | None,
    database: str | None,
    customer: str | None,
) -> "list[str | StdioServerParameters]":
    """Return the servers that a command calls: by default this one.

    Raises typer.BadParameter for URLs of different origins that would all get the one token.
    """
    if not (urls or command):
        return [_this_server(ctx, database=database, customer=customer)]
    if database or customer:
        raise typer.BadParameter("--database and --customer are for this bank only")
    if os.environ.get(TOKEN_VARIABLE) and len({tuple(url.split("/")[:3]) for url in urls}) > 1:
        raise typer.BadParameter(
            f"the token in {TOKEN_VARIABLE} is for one of these URLs, and they have different hosts"
        )
    return [*urls, *([started_by(command)] if command else [])]


def _this_server(ctx: typer.Context, **options: str | None) -> "StdioServerParameters":
    from banking_server.server.settings import PREFIX as BANK

    chosen = {name: value or ctx.find_root().obj[name] for name, value in options.items()}
    server = started_by([sys.executable, "-m", "banking_server"], secrets=_secret_settings())
    # Not as options: everybody on this computer can read command lines.
    variables = {f"{BANK}{name.upper()}": value for name, value in chosen.items() if value}
    server.env = {**(server.env or {}), **variables}
    return server


def started_by(command: list[str], *, secrets: Collection[str] = ()) -> "StdioServerParameters":
    """Return how to start a server in this environment, as the shell would.

    No server gets the bearer token, nor a secret setting that is not among `secrets`.
    """
    from mcp.client.stdio import StdioServerParameters

    hidden = {TOKEN_VARIABLE, *_secret_settings()} - set(secrets)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return StdioServerParameters(command=command[0], args=command[1:], env=environment)


def _secret_settings() -> tuple[str, ...]:
    """Return the variables that only this program's own server gets."""
    from banking_server.client.agent.settings import PREFIX as MODEL
    from banking_server.server.settings import PREFIX as BANK

    names = (f"{BANK}SECRET", f"{MODEL}KEY")
    # A URL may hold a password.
    is_url = "://" in os.environ.get(f"{BANK}DATABASE", "")
    return (*names, f"{BANK}DATABASE") if is_url else names


@asynccontextmanager
async def connect_all(
    wanted: "Sequence[str | StdioServerParameters]",
    *,
    insecure: bool,
    person: "TerminalQuestions | None",
) -> AsyncIterator[Mapping[str, "Client"]]:
    """Connect to servers, each under its own name. Raises ConnectionFailed."""
    from banking_server.client.connect import connected

    clients: dict[str, Client] = {}
    async with AsyncExitStack() as stack:
        for number, server in enumerate(wanted, start=1):
            asks = person.asked_by(f"no. {number}") if person and len(wanted) > 1 else person
            connection = connected(server, insecure=insecure, elicitation=asks)
            client, _ = await stack.enter_async_context(connection)
            clients[_own_name(client, clients)] = client
        yield clients


def _own_name(client: "Client", taken: Mapping[str, object]) -> str:
    own = one_line(client.server_info.name if client.server_info else "", 60) or "server"
    number = 2
    name = own
    while name in taken:
        name, number = f"{own} {number}", number + 1
    return name
