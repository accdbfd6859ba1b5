"""`banking-server install HOST`: prints the entry that starts this server in a host.

Where a host has a command of its own for that, it is the command that is printed. No file of a host
is read or written. As of November 2026, from the hosts' own documentation.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from banking_server.cli.doctor import database_finding
from banking_server.cli.messages import CommandFailed, note
from banking_server.cli.options import CodesOption, CustomerOption, DatabaseOption, settings_of

if TYPE_CHECKING:
    from banking_server.server.settings import Settings

NAME: Final = "bank"
"""What the server is called in a host."""

Command = Sequence[str]
"""A program, by its full path, and its arguments: hosts start servers with a PATH of their own."""


_written: Final = partial(json.dumps, ensure_ascii=False)
"""Writes JSON, of which a string is one of TOML and of YAML too."""


@dataclass(frozen=True)
class Host:
    """One host."""

    entry: Callable[[Command], str]
    """Returns the entry, or the host's command, for the command that starts this server."""
    place: str
    """What to do with it, in one sentence."""


def _json(servers: str, **members: Any) -> Callable[[Command], str]:
    """Return what writes an entry in JSON, with these members, under the name `servers`."""

    def entry(command: Command) -> str:
        server = {**members, "command": command[0], "args": list(command[1:])}
        return _written({servers: {NAME: server}}, indent=2)

    return entry


def _claude(command: Command) -> str:
    # With `alwaysLoad`, Claude Code waits for the server before its first request.
    entry = {"command": command[0], "args": list(command[1:]), "alwaysLoad": True}
    return shlex.join(["claude", "mcp", "add-json", "--scope", "user", NAME, _written(entry)])


def _vscode(command: Command) -> str:
    server = {"name": NAME, "type": "stdio", "command": command[0], "args": list(command[1:])}
    return shlex.join(["code", "--add-mcp", _written(server)])


def _codex(command: Command) -> str:
    lines = (
        f"[mcp_servers.{NAME}]",
        f"command = {_written(command[0])}",
        f"args = {_written(command[1:])}",
        # Without it, Codex begins to work before the server is there.
        "required = true",
    )
    return "\n".join(lines)


def _goose(command: Command) -> str:
    lines = (
        "extensions:",
        f"  {NAME}:",
        "    enabled: true",
        "    type: stdio",
        f"    name: {NAME}",
        "    description: A personal bank",
        f"    cmd: {_written(command[0])}",
        f"    args: {_written(command[1:])}",
        "    envs: {}",
        "    timeout: 300",
    )
    return "\n".join(lines)


HOSTS: Final = {
    "claude-desktop": Host(
        _json("mcpServers"),
        "Put this into claude_desktop_config.json (in Claude Desktop: Settings, Developer, Edit "
        "Config). Then restart Claude Desktop.",
    ),
    "claude-code": Host(
        _claude,
        "Run this command. The next session of Claude Code has the server; /mcp shows it.",
    ),
    "codex": Host(
        _codex,
        "Put this into ~/.codex/config.toml. The next session of Codex has the server. `codex mcp "
        "add` leaves out `required`, and Codex then does not wait for the server.",
    ),
    "vscode": Host(_vscode, 'Run this command. "MCP: List Servers" in VS Code starts the server.'),
    "cursor": Host(
        _json("mcpServers", type="stdio"),
        "Put this into ~/.cursor/mcp.json. Cursor's settings list the server under MCP.",
    ),
    "goose": Host(
        _goose,
        "Put this into ~/.config/goose/config.yaml. The next session of Goose has the server.",
    ),
    "inspector": Host(
        _json("mcpServers", type="stdio"),
        "Put this into a file mcp.json. Then start the Inspector: npx "
        f"@modelcontextprotocol/inspector --config mcp.json --server {NAME}",
    ),
}
"""All of them, by the name that is typed."""


def install(
    ctx: typer.Context,
    host: Annotated[str, typer.Argument(help=f"One of {', '.join(HOSTS)}.")],
    customer: CustomerOption = None,
    database: DatabaseOption = None,
    codes: CodesOption = None,
) -> None:
    """Print the configuration entry of this server for a host.

    tool-chaining-proxy stands in front and makes the follow-up calls for the host. The command also
    says into which file the entry belongs. No file of the host is read or changed.
    """
    chosen = HOSTS.get(host)
    if chosen is None:
        raise CommandFailed(f"There is no host {host[:60]!r}. Choose one of {', '.join(HOSTS)}.")
    settings = settings_of(ctx, customer=customer, database=database, codes=codes)
    server = [_program("banking-server"), *_arguments(settings)]
    status, _, found = database_finding(settings)
    if status == "problem":
        note(f"Warning: this entry cannot start the server yet: {found.rstrip('.')}.")
    # The bank is this installation's own, so its hints are trusted.
    print(chosen.entry([_program("tool-chaining-proxy"), "--trust-hints", "--", *server]))
    note(chosen.place)


def _arguments(settings: "Settings") -> list[str]:
    """Return the settings that have options as arguments, which hosts pass on as they are."""
    from banking_server.bank.location import URL

    arguments = [] if settings.customer is None else ["--customer", settings.customer]
    if "database" in settings.model_fields_set:
        if isinstance(settings.database, URL) and settings.database.password is not None:
            raise CommandFailed(
                "The database's URL has a password, which the host's configuration would show. "
                "Leave it out of the URL, and put it into the file that PGPASSFILE names."
            )
        arguments += ["--database", str(settings.database)]
    if settings.codes is not None:
        arguments += ["--codes", settings.codes]
    return arguments


def _program(name: str) -> str:
    """Return the full path of a program of this installation. Raises `CommandFailed`."""
    from importlib.metadata import entry_points

    if any((folder / "CACHEDIR.TAG").exists() for folder in Path(sys.prefix).parents):
        # An environment that `uvx` has made, and deletes some day.
        raise CommandFailed(
            "This program runs from a cache, which can be deleted at any time. Install it first, "
            "with `uv tool install .` or `pipx install .` in the checkout, or with "
            "`uv tool install NAME` if you ran `uvx NAME`."
        )
    for command in entry_points(group="console_scripts", name=name):
        for file in (command.dist and command.dist.files) or []:
            if file.stem == name and file.parent.name in ("bin", "Scripts"):
                return os.path.abspath(file.locate())
    raise CommandFailed(f"There is no program {name} here: install this package with pip.")
