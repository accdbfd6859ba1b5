"""The servers of a conversation: of a file, or of the command line, each with the token for it."""

import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from banking_server.agent.configuration import AgentConfiguration, ServerConfiguration
from banking_server.cli.client import TOKEN_VARIABLE, advice_for, started_by
from banking_server.cli.messages import CommandFailed
from banking_server.host.connect import ConnectionFailed, connected
from banking_server.text import one_line

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.dispatcher import ProgressFnT

    from banking_server.host.patience import Patience
    from banking_server.host.questions import TerminalQuestions

Wanted = tuple[str, "str | StdioServerParameters", str | None]
"""A server: the name it is to have, if any, how to reach it, and the variable of its token."""


def from_configuration(configuration: AgentConfiguration) -> list[Wanted]:
    """Return the servers of an agent. Raises CommandFailed where a token is not there."""
    tokens = {one.token_variable for one in configuration.servers if one.token_variable}
    for one in configuration.servers:
        if one.token_variable and not os.environ.get(one.token_variable):
            # Its name is not repeated: it may be a token that somebody wrote in its place.
            raise CommandFailed(
                f"Server {one.name}: the environment variable that token_variable names is not "
                "set: it is to hold the server's token."
            )

    def way(one: ServerConfiguration) -> "str | StdioServerParameters":
        return one.url or started_by(one.command or [], kept_back=tokens)

    return [(one.name, way(one), one.token_variable) for one in configuration.servers]


def from_options(urls: Sequence[str], commands: Sequence[str | list[str]]) -> list[Wanted]:
    """Return the servers of a command line.

    Raises typer.BadParameter for a command that is none, and for URLs of different origins that
    would all get the one token.
    """
    variable = TOKEN_VARIABLE if os.environ.get(TOKEN_VARIABLE) else None
    try:
        origins = {urlsplit(url)[:2] for url in urls}
        split = [shlex.split(one) if isinstance(one, str) else one for one in commands]
    except ValueError as error:
        raise typer.BadParameter(f"--url or --server cannot be read: {error}") from None
    if variable and len(origins) > 1:
        raise typer.BadParameter(
            f"the token in {TOKEN_VARIABLE} is for one of these servers; name a variable for each "
            "in a file, and give it with --config"
        )
    if not all(split):
        raise typer.BadParameter("--server needs a command")
    return [*(("", url, variable) for url in urls), *(("", started_by(one), None) for one in split)]


@asynccontextmanager
async def connect_all(
    wanted: Sequence[Wanted],
    *,
    insecure: bool,
    person: "TerminalQuestions | None",
    progressed: "ProgressFnT | None",
    patience: "Patience",
) -> AsyncIterator[Mapping[str, "Client"]]:
    """Connect to servers, each under its name. Raises ConnectionFailed, which says which it was."""
    clients: dict[str, Client] = {}
    several = len(wanted) > 1
    async with AsyncExitStack() as stack:
        for number, (name, server, variable) in enumerate(wanted, start=1):
            token = os.environ.get(variable) if variable else None
            who = name or f"no. {number}"
            try:
                client, _ = await stack.enter_async_context(
                    connected(
                        server,
                        token=token,
                        token_advice=advice_for(token, variable),
                        insecure=insecure,
                        elicitation=person.asked_by(who) if person and several else person,
                        progressed=progressed,
                        patience=patience,
                    )
                )
            except ConnectionFailed as error:
                raise ConnectionFailed(
                    f"Server {who}: {error}" if several else str(error)
                ) from error
            clients[name or _own_name(client, clients)] = client
        yield clients


def _own_name(client: "Client", taken: Mapping[str, object]) -> str:
    own = one_line(client.server_info.name if client.server_info else "", 60) or "server"
    number = 2
    name = own
    while name in taken:
        name, number = f"{own} {number}", number + 1
    return name
