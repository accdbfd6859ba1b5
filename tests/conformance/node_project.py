"""Where Node 22 and the packages of npm are that tests need: in their folders, or elsewhere."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("MCP_NODE_PROJECT") or ROOT / "tests" / "node")
TYPESCRIPT = Path(os.environ.get("MCP_TYPESCRIPT_PROJECT") or ROOT / "specs" / "typescript")
HOSTS = Path(os.environ.get("MCP_HOSTS_PROJECT") or ROOT / "tests" / "node" / "hosts")
VARIABLES = {
    FOLDER: "MCP_NODE_PROJECT",
    TYPESCRIPT: "MCP_TYPESCRIPT_PROJECT",
    HOSTS: "MCP_HOSTS_PROJECT",
}
MODULES = FOLDER / "node_modules"


@cache
def node() -> str | None:
    """Return the path of the program: that of the folder, or else that of the machine.

    The folder has the package of this machine's processor, whose program npm 10 does not link.
    """
    program = next(MODULES.glob("node-linux-*/bin/node"), None)
    return str(program) if program else shutil.which("node")


def not_installed(package: str, folder: Path) -> str | None:
    """Return why `package` is not in `folder`, and what to do about it; None if it is."""
    if (folder / "node_modules" / package).is_dir():
        return None
    return (
        f"{package} is not installed in {folder}: `npm ci --prefix {folder}`, "
        f"or name another folder by {VARIABLES[folder]}"
    )


@cache
def missing(package: str, folder: Path = FOLDER) -> str | None:
    """Return why `package` of `folder` cannot be used, and what to do about it; None if it can."""
    absent = not_installed(package, folder)
    if absent is not None:
        return absent
    program = node()
    if program is None:
        return "Node is not installed"
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    # From 22.18 on, Node runs TypeScript as it is.
    if tuple(map(int, version.strip().lstrip("v").split(".")[:2])) < (22, 18):
        return f"Node 22.18 is needed, and {program} is {version.strip()}"
    return None
