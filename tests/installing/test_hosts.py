"""Where hosts keep their configuration, on each system."""

from pathlib import Path

import pytest

from banking_server.installing.hosts import HOSTS, HostName, Machine

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("platform", "places"),
    [
        (
            "linux",
            {
                "claude-desktop": ".config/Claude/claude_desktop_config.json",
                "claude-code": ".claude.json",
                "vscode": ".config/Code/User/mcp.json",
                "cursor": ".cursor/mcp.json",
                "goose": ".config/goose/config.yaml",
                "inspector": ".mcp-inspector/mcp.json",
            },
        ),
        (
            "darwin",
            {
                "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
                "claude-code": ".claude.json",
                "vscode": "Library/Application Support/Code/User/mcp.json",
                "cursor": ".cursor/mcp.json",
                "goose": ".config/goose/config.yaml",
                "inspector": ".mcp-inspector/mcp.json",
            },
        ),
        (
            "win32",
            {
                "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
                "claude-code": ".claude.json",
                "vscode": "AppData/Roaming/Code/User/mcp.json",
                "cursor": ".cursor/mcp.json",
                "goose": "AppData/Roaming/Block/goose/config/config.yaml",
                "inspector": ".mcp-inspector/mcp.json",
            },
        ),
    ],
)
def test_where_the_files_are(platform: str, places: dict[str, str]) -> None:
    machine = Machine(platform, HOME, {})
    assert {name: host.file(machine) for name, host in HOSTS.items()} == {
        name: HOME / place for name, place in places.items()
    }


def test_folders_that_variables_name() -> None:
    environ = {
        "XDG_CONFIG_HOME": "/config",
        "CLAUDE_CONFIG_DIR": "/claude",
        "MCP_CATALOG_PATH": "/catalog.json",
    }
    machine = Machine("linux", HOME, environ)
    assert HOSTS[HostName.VSCODE].file(machine) == Path("/config/Code/User/mcp.json")
    assert HOSTS[HostName.CLAUDE_CODE].file(machine) == Path("/claude/.claude.json")
    assert HOSTS[HostName.GOOSE].file(machine) == Path("/config/goose/config.yaml")
    assert HOSTS[HostName.INSPECTOR].file(machine) == Path("/catalog.json")
    rooted = Machine("linux", HOME, {"GOOSE_PATH_ROOT": "/goose"})
    assert HOSTS[HostName.GOOSE].file(rooted) == Path("/goose/config/config.yaml")


def test_claude_desktop_from_its_package_sees_another_folder(tmp_path: Path) -> None:
    seen = tmp_path / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    seen.mkdir(parents=True)
    (tmp_path / "AppData/Roaming/Claude").mkdir(parents=True)
    machine = Machine("win32", tmp_path, {})
    file = HOSTS[HostName.CLAUDE_DESKTOP].file(machine)
    assert file == seen / "claude_desktop_config.json"


def test_the_edition_of_vscode_that_is_there(tmp_path: Path) -> None:
    insiders = tmp_path / ".config/Code - Insiders/User"
    insiders.mkdir(parents=True)
    vscode = HOSTS[HostName.VSCODE]
    assert vscode.file(Machine("linux", tmp_path, {})) == insiders / "mcp.json"


def test_what_seems_to_be_installed(tmp_path: Path) -> None:
    machine = Machine("linux", tmp_path, {"PATH": str(tmp_path / "bin")})
    assert not any(host.seems_installed(machine) for host in HOSTS.values())
    (tmp_path / ".claude.json").touch()
    (tmp_path / ".config/Claude").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/goose").touch(0o755)
    found = [name for name, host in HOSTS.items() if host.seems_installed(machine)]
    assert found == ["claude-desktop", "claude-code", "goose"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_home_that_cannot_be_looked_into(host: HostName) -> None:
    """What the system refuses to look at, here for its length, counts as not there."""
    machine = Machine("linux", Path("/", "x" * 300), {"PATH": ""})
    assert not HOSTS[host].seems_installed(machine)
    assert HOSTS[host].file(machine).is_relative_to(machine.home)
