"""Where each host keeps its configuration, and what a server looks like in it.

As of November 2026, from the hosts' own documentation and, where that says nothing, from reports
of their users. Nothing here reads a file.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self


class HostName(StrEnum):
    """A host, as people type it."""

    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_CODE = "claude-code"
    VSCODE = "vscode"
    CURSOR = "cursor"
    GOOSE = "goose"
    INSPECTOR = "inspector"


@dataclass(frozen=True)
class Machine:
    """What the places depend on."""

    platform: str
    """As `sys.platform` has it."""

    home: Path
    environ: Mapping[str, str]

    @classmethod
    def this(cls) -> Self:
        """Return the machine that this runs on."""
        return cls(sys.platform, Path.home(), os.environ)

    def folder(self, variable: str, otherwise: str) -> Path:
        """Return the folder that a variable names, else one in the home folder."""
        return Path(self.environ.get(variable) or self.home / otherwise)

    @property
    def applications(self) -> Path:
        """The folder in which desktop applications keep their data."""
        if self.platform == "darwin":
            return self.home / "Library/Application Support"
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True)
class Host:
    """One host: what it is called, where its configuration lies, and how it is written."""

    name: HostName
    title: str
    places: Callable[[Machine], Sequence[Path]]
    """The user's configuration: where it may lie, the place to prefer first."""

    project: str | None
    """Where a folder has a configuration of its own, seen from that folder."""

    programs: Sequence[str]
    """What is on the PATH where the host is installed."""

    servers: str
    """The member that holds the servers, by name."""

    entry: Callable[[str, Sequence[str]], dict[str, Any]]
    """The entry of a server, by its name and the command that starts it."""

    afterwards: str
    """What people do then to see the server, in one sentence; it may name `{file}` and `{name}`."""

    comments: bool = False
    """Whether it reads comments and trailing commas; some lose all servers over one."""

    yaml: bool = False

    def file(self, machine: Machine) -> Path:
        """Return the user's configuration, which need not be there."""
        places = self.places(machine)
        return next((place for place in places if os.path.isdir(place.parent)), places[0])

    def seems_installed(self, machine: Machine) -> bool:
        """Say whether the host was ever started here, or could be from a terminal."""
        # A `Path` raises of a folder that may not be looked into; to these it is not there.
        return any(
            os.path.exists(place) or (place.parent != machine.home and os.path.isdir(place.parent))
            for place in self.places(machine)
        ) or any(shutil.which(name, path=machine.environ.get("PATH")) for name in self.programs)


def _claude_desktop(machine: Machine) -> Sequence[Path]:
    places = [machine.applications / "Claude"]
    if machine.platform == "win32":
        # Installed as a package, which is what its site offers, it sees a folder of its own.
        packages = machine.folder("LOCALAPPDATA", "AppData/Local") / "Packages"
        places[:0] = sorted(packages.glob("Claude_*/LocalCache/Roaming/Claude"))
    return [place / "claude_desktop_config.json" for place in places]


def _claude_code(machine: Machine) -> Sequence[Path]:
    return [machine.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json"]


def _vscode(machine: Machine) -> Sequence[Path]:
    return [
        machine.applications / edition / "User/mcp.json" for edition in ("Code", "Code - Insiders")
    ]


def _cursor(machine: Machine) -> Sequence[Path]:
    return [machine.home / ".cursor/mcp.json"]


def _goose(machine: Machine) -> Sequence[Path]:
    if root := machine.environ.get("GOOSE_PATH_ROOT"):
        return [Path(root) / "config/config.yaml"]
    if machine.platform == "win32":
        return [machine.applications / "Block/goose/config/config.yaml"]
    return [machine.folder("XDG_CONFIG_HOME", ".config") / "goose/config.yaml"]


def _inspector(machine: Machine) -> Sequence[Path]:
    return [machine.folder("MCP_CATALOG_PATH", ".mcp-inspector/mcp.json")]


def _plain(name: str, command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:])}


def _typed(name: str, command: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(name, command)}


def _extension(name: str, command: Sequence[str]) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "A personal bank",
        "cmd": command[0],
        "args": list(command[1:]),
        "envs": {},
        "env_keys": [],
        "timeout": 300,
    }


HOSTS: Final[Mapping[HostName, Host]] = {
    host.name: host
    for host in (
        Host(
            name=HostName.CLAUDE_DESKTOP,
            title="Claude Desktop",
            places=_claude_desktop,
            project=None,
            programs=(),
            servers="mcpServers",
            entry=_plain,
            afterwards="Quit Claude Desktop and start it again.",
        ),
        Host(
            name=HostName.CLAUDE_CODE,
            title="Claude Code",
            places=_claude_code,
            project=".mcp.json",
            programs=("claude",),
            servers="mcpServers",
            entry=_typed,
            afterwards="A new session of Claude Code has it; /mcp shows it.",
        ),
        Host(
            name=HostName.VSCODE,
            title="VS Code",
            places=_vscode,
            project=".vscode/mcp.json",
            programs=("code", "code-insiders"),
            servers="servers",
            entry=_typed,
            afterwards='In VS Code, "MCP: List Servers" starts it.',
            comments=True,
        ),
        Host(
            name=HostName.CURSOR,
            title="Cursor",
            places=_cursor,
            project=".cursor/mcp.json",
            programs=("cursor", "cursor-agent"),
            servers="mcpServers",
            entry=_typed,
            afterwards="Cursor's settings list it under MCP, where it is switched on.",
            comments=True,
        ),
        Host(
            name=HostName.GOOSE,
            title="Goose",
            places=_goose,
            project=None,
            programs=("goose",),
            servers="extensions",
            entry=_extension,
            afterwards="The next session of Goose has it.",
            comments=True,
            yaml=True,
        ),
        Host(
            name=HostName.INSPECTOR,
            title="MCP Inspector",
            places=_inspector,
            project="mcp.json",
            programs=("npx",),
            servers="mcpServers",
            entry=_typed,
            afterwards="npx @modelcontextprotocol/inspector --config {file} --server {name}",
        ),
    )
}
"""All of them, by name."""
