"""The command that starts this server from anywhere on this machine, whoever runs it."""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

PROGRAMS: Final = ("banking-server", "tool-chaining-proxy")
"""The server, and what stands in front of it for hosts that do not follow next tools."""


class NoProgram(Exception):
    """There is no command that would still start this server tomorrow; the message says why."""


def command(
    options: Sequence[str],
    *,
    proxy: bool,
    installed: Distribution,
    prefix: Path,
    environ: Mapping[str, str],
) -> list[str]:
    """Return the command, with the options of `banking-server`, behind the proxy or not.

    `installed` is this package, and `prefix` the environment that it is in. Raises `NoProgram`.
    """
    if _is_temporary(prefix):
        # Under `uv tool run` they are on the PATH.
        start = [*_by_uv(installed, environ)]
        server, in_front = PROGRAMS
    else:
        start = []
        server, in_front = (_script(installed, name) for name in PROGRAMS)
    return [*start, *([in_front, "--"] if proxy else []), server, *options]


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
    """Say whether an environment is one that `uvx` or `pipx run` makes, and deletes some day."""
    return any(
        (folder / "CACHEDIR.TAG").exists() or folder.name.lower() in (".cache", "cache", "caches")
        for folder in prefix.parents
    )


def _by_uv(installed: Distribution, environ: Mapping[str, str]) -> list[str]:
    """Return the beginning of a command that has uv make the environment again if it must."""
    uv = environ.get("UV")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if not uv or "url" not in origin:
        raise NoProgram(
            "This runs from a cache that may be emptied any time: install it first, with "
            "`uv tool install` or `pipx install`."
        )
    source = str(origin["url"])
    if "vcs_info" in origin:
        source = f"{origin['vcs_info']['vcs']}+{source}@{origin['vcs_info']['commit_id']}"
    elif source.startswith("file:"):
        source = url2pathname(urlsplit(source).path)
    return [uv, "tool", "run", "--from", source]
