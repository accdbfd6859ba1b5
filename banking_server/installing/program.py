"""The command that starts this server from anywhere on this machine, whoever runs it."""

import os
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

_SERVER: Final = "banking-server"
_IN_FRONT: Final = "tool-chaining-proxy"
"""What stands in front of it for hosts that do not follow next tools."""


class NoProgram(Exception):
    """There is no command that would still start this server tomorrow; the message says why."""


def command(
    options: Sequence[str], *, proxy: bool, installed: Distribution, prefix: Path
) -> list[str]:
    """Return the command, with the options of `banking-server`, behind the proxy or not.

    `installed` is this package, and `prefix` the environment that it is in. Raises `NoProgram`.
    """
    if _is_temporary(prefix):
        # To have `uvx` make it again at each start takes the network, and what uv was told here.
        raise NoProgram(
            "This runs from a cache, which may be emptied any time: in the checkout, "
            "`uv tool install .` or `pipx install .`, and then run this again."
        )
    server = [_script(installed, _SERVER), *options]
    return [_script(installed, _IN_FRONT), "--", *server] if proxy else server


def _script(installed: Distribution, name: str) -> str:
    found = [
        os.path.abspath(file.locate())
        for file in installed.files or []
        if file.stem == name and file.parent.name in ("bin", "Scripts")
    ]
    if not found:
        raise NoProgram(f"There is no program {name} here: install this package, as with pip.")
    return found[0]


def _is_temporary(prefix: Path) -> bool:
    """Say whether an environment is one that `uvx` or `pipx run` makes, and deletes some day.

    Others are in caches too, such as Poetry's, and stay.
    """
    folders = [folder.name.lower() for folder in prefix.parents]
    by_pipx = any("pipx" in name for name in folders)
    return any((folder / "CACHEDIR.TAG").exists() for folder in prefix.parents) or (
        by_pipx and any(name in (".cache", "cache", "caches") for name in folders)
    )
