"""The servers of a conversation: those of the command line, with the token for them."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from banking_server.cli.client import connecting, started_by
from tool_chaining.text import one_line
from tool_chaining.urls import TOKEN_VARIABLE

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    from banking_server.client.questions import TerminalQuestions


def from_options(
    urls: Sequence[str], command: list[str] | None
) -> "list[str | StdioServerParameters]":
    """Return the servers of a command line.

    Raises typer.BadParameter for URLs of different origins that would all get the one token.
    """
    try:
        origins = {urlsplit(url)[:2] for url in urls}
    except ValueError as error:
        raise typer.BadParameter(f"--url cannot be read: {error}") from None
    if os.environ.get(TOKEN_VARIABLE) and len(origins) > 1:
        raise typer.BadParameter(
            f"the token in {TOKEN_VARIABLE} is for one of these URLs, and they have different hosts"
        )
    return [*urls, *([started_by(command)] if command else [])]


@asynccontextmanager
async def connect_all(
    wanted: "Sequence[str | StdioServerParameters]",
    *,
    insecure: bool,
    person: "TerminalQuestions | None",
) -> AsyncIterator[Mapping[str, "Client"]]:
    """Connect to servers, each under its own name. Raises ConnectionFailed."""
    clients: dict[str, Client] = {}
    async with AsyncExitStack() as stack:
        for number, server in enumerate(wanted, start=1):
            asks = person.asked_by(f"no. {number}") if person and len(wanted) > 1 else person
            connect = connecting(server, insecure=insecure)
            client, _ = await stack.enter_async_context(connect(elicitation=asks))
            clients[_own_name(client, clients)] = client
        yield clients


def _own_name(client: "Client", taken: Mapping[str, object]) -> str:
    own = one_line(client.server_info.name if client.server_info else "", 60) or "server"
    number = 2
    name = own
    while name in taken:
        name, number = f"{own} {number}", number + 1
    return name
