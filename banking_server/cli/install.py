"""`banking-server install HOST`: prints the entry that starts this server in a host.

If a host has a command of its own for that, it prints that command. It reads and writes no file of
a host. From the hosts' own documentation, as of November 2026.
"""

import json
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from banking_server.cli.messages import CommandFailed, note
from banking_server.cli.options import CodesOption, CustomerOption, DatabaseOption, settings_of

NAME: Final = "bank"
"""The server's name in a host."""

Command = Sequence[str]
"""A program with its full path, since hosts have a PATH of their own, and its arguments."""


_written: Final = partial(json.dumps, ensure_ascii=False)
"""Writes JSON, whose strings are valid in TOML and YAML too."""


@dataclass(frozen=True)
class Host:
    """One host."""

    entry: Callable[[Command], str]
    """Returns the entry, or the host's command, for the command that starts this server."""
    place: str
    """Instructions for it, in one sentence."""


def _json(servers: str, **members: Any) -> Callable[[Command], str]:
    """Return a function that writes a JSON entry with these members, under the name `servers`."""

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
        # Without it, Codex starts to work before the server is ready.
        "required = true",
        # A slow machine needs more than Codex's ten seconds; with `required`, Codex would stop.
        "startup_timeout_sec = 120",
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
"""All hosts, by the name to type."""


def install(
    ctx: typer.Context,
    host: Annotated[str | None, typer.Argument(metavar="HOST", hidden=True)] = None,
    customer: CustomerOption = None,
    database: DatabaseOption = None,
    codes: CodesOption = None,
) -> None:
    """Print the configuration entry of this server for HOST.

    The entry starts tool-chaining-proxy in front of the server, which makes the follow-up calls for
    the host. Without HOST, it lists the hosts. It changes none of the host's files.
    """
    if host is None:
        print("\n".join(HOSTS))
        note("Choose one, as in: banking-server install cursor")
        return
    chosen = HOSTS.get(host)
    if chosen is None:
        raise CommandFailed(f"There is no host {host[:60]!r}. Choose one of {', '.join(HOSTS)}.")
    given = {"customer": customer, "database": database, "codes": codes}
    arguments = _arguments(ctx, {name: value for name, value in given.items() if value})
    server = [_program("banking-server"), *arguments]
    # The bank is this installation's own, so its hints are trusted.
    print(chosen.entry([_program("tool-chaining-proxy"), "--trust-hints", "--", *server]))
    note(chosen.place)


def _arguments(ctx: typer.Context, own: Mapping[str, str]) -> list[str]:
    """Return the settings that have options, as arguments that hosts pass on unchanged.

    The database is not opened: `doctor` says whether the server can start. Raises `SettingsError`
    and `CommandFailed`.
    """
    environment = {name: os.environ.get(f"BANKING_{name.upper()}") for name in _OPTIONS}
    before = {name: value for name, value in ctx.find_root().obj.items() if value}
    given: dict[str, Any] = {name: value for name, value in environment.items() if value}
    given |= {**before, **own}
    database = given.get("database")
    if (database and ":" in str(database)) or "codes" in given:
        # Imported only if there is something to check: it costs more than all the rest.
        from banking_server.bank.location import URL

        location = settings_of(ctx, **own).database
        if isinstance(location, URL) and location.password is not None:
            raise CommandFailed(
                "The database's URL has a password, which the host's configuration would show. "
                "Leave it out of the URL, and put it into the file that PGPASSFILE names."
            )
        given |= {"database": location} if database else {}
    elif database:
        given["database"] = Path(database).expanduser().absolute()
    return [part for name in _OPTIONS if name in given for part in (f"--{name}", str(given[name]))]


_OPTIONS: Final = ("customer", "database", "codes")


def _program(name: str) -> str:
    """Return the full path of a program of this installation. Raises `CommandFailed`."""
    if any((folder / "CACHEDIR.TAG").exists() for folder in Path(sys.prefix).parents):
        # An environment of `uvx`, which deletes it some day.
        raise CommandFailed(
            "This program runs from a cache, which can be deleted at any time. Install it first, "
            "with `uv tool install .` or `pipx install .` in the checkout, or with "
            "`uv tool install NAME` if you ran `uvx NAME`."
        )
    # `pip install --user` puts programs outside the environment.
    for folder in (os.path.dirname(os.path.abspath(sys.argv[0])), sysconfig.get_path("scripts")):
        if (program := shutil.which(name, path=folder)) is not None:
            return program
    raise CommandFailed(f"There is no program {name} here: install this package with pip.")
