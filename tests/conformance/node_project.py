"""Where Node 22 and the packages of npm are that some tests need: in `tests/node`, or elsewhere."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

FOLDER = Path(os.environ.get("MCP_NODE_PROJECT") or Path(__file__).parents[1] / "node")
MODULES = FOLDER / "node_modules"


@cache
def node() -> str | None:
    """Return the path of the program: that of the folder, or else that of the machine."""
    return shutil.which("node", path=MODULES / ".bin") or shutil.which("node")


@cache
def missing(package: str) -> str | None:
    """Return why `package` cannot be used, and what to do about it; None if it can."""
    if not (MODULES / package).is_dir():
        return (
            f"{package} is not installed in {FOLDER}: `npm ci --prefix tests/node`, "
            "or name another folder by MCP_NODE_PROJECT"
        )
    program = node()
    if program is None:
        return "Node is not installed"
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < 22:
        return f"Node 22 is needed, and {program} is {version.strip()}"
    return None
