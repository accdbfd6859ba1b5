"""What `doctor` looks at: whether all of this program can work here, and who stands in its way.

Nothing is changed, nothing takes longer than some seconds, and no secret is told.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from pydantic import SecretStr

from banking_server import __version__
from banking_server.agent.settings import (
    ModelNotConfigured,
    ModelSettings,
    is_configured,
    load_model_settings,
)
from banking_server.bank.location import URL
from banking_server.bank.looking import SQLITE_VERSION, WAL_RESET_MENDED, look_at
from banking_server.bank.sqlite_file import beside
from banking_server.bank.storage import DatabaseMissing, DatabaseUnavailable
from banking_server.chaining.bearer import without_user
from banking_server.chaining.steady_http import BoundedHttpClient
from banking_server.cli.messages import CommandFailed
from banking_server.cli.serve import check_address
from banking_server.host.plain import LINE
from banking_server.installing.configuration import Configuration
from banking_server.installing.hosts import HOSTS, Host, HostName, Machine
from banking_server.installing.unreadable import Unreadable
from banking_server.server.build import utc_now
from banking_server.server.settings import Settings, SettingsError, load_settings
from banking_server.server.tokens import SecretUnavailable, Tokens, load_keys
from banking_server.text import one_line

SECONDS: Final = 3.0
"""How long each thing that may never answer is waited for."""

PROXY_PORT: Final = 9000
"""Where `tool-chaining-proxy --http` serves if nobody says otherwise."""

INSPECTOR_NODE: Final = 22
"""The oldest version of Node that the MCP Inspector runs on."""

_LISTED: Final = 5
"""Names that are told of a longer list."""


class Status(StrEnum):
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    """Something does not work, or not as well as it could; the rest does."""
    PROBLEM = "problem"
    """No server can be started with these settings, or no demo."""


@dataclass(frozen=True)
class Finding:
    """What was found of one thing."""

    check: str
    status: Status
    message: str
    remedy: str | None = None
    """What to do, in one sentence."""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "check": self.check,
            "status": self.status,
            "message": self.message,
            "remedy": self.remedy,
        }


def _ok(check: str, message: str, remedy: str | None = None) -> Finding:
    return Finding(check, Status.OK, message, remedy)


def _warning(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Status.WARNING, message, remedy)


def _problem(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Status.PROBLEM, message, remedy)


def check_up(options: Mapping[str, str | None]) -> Iterator[Finding]:
    """Look at everything, with the settings of the environment and these; each as it is found."""
    yield _python()
    yield _sqlite()
    try:
        settings = load_settings(**options)
    except SettingsError as error:
        yield _problem("settings", str(error), "Set it right, or unset it for its default.")
    else:
        yield (database := _database(settings))
        yield _secret(settings, usable=database.status is not Status.PROBLEM)
        yield _port("port", settings.host, settings.port, "BANKING_PORT or serve --http --port")
        yield _port("proxy port", "127.0.0.1", PROXY_PORT, "tool-chaining-proxy --http --port")
    yield from _hosts(Machine.this())
    yield _model()


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return _ok("python", f"Python {found}, banking-server {__version__}, MCP SDK {version('mcp')}")


def _sqlite() -> Finding:
    said = f"SQLite {'.'.join(map(str, SQLITE_VERSION))}"
    if SQLITE_VERSION >= WAL_RESET_MENDED:
        return _ok("sqlite", said)
    mended = ".".join(map(str, WAL_RESET_MENDED))
    return _ok(
        "sqlite",
        f"{said}, which could lose commits as it begins its log anew (mended in {mended}); this "
        "program does not let it",
        "Let no other program write to the database while a server runs.",
    )


def _database(settings: Settings) -> Finding:
    where = settings.database
    try:
        look = anyio.run(partial(look_at, where, settings.customer, seconds=SECONDS))
    except DatabaseMissing:
        if not isinstance(where, Path):
            missing = "empty"
        elif settings.secret is not None or _is_there(settings.secret_path):
            missing = "not there, but a secret is"
        else:
            if folder := _closed_above(where):
                return _problem(
                    "database",
                    f"{where} is not there, and no file can be made in {folder}",
                    "Let this user write there, or name another database with BANKING_DATABASE.",
                )
            return _ok("database", f"{where} is not there yet; the first start makes it")
        return _problem(
            "database",
            f"{where} is {missing}",
            "`banking-server database create` makes one, `database restore FILE` brings one back.",
        )
    except DatabaseUnavailable as error:
        return _problem(
            "database",
            one_line(str(error), LINE),
            "Put that right, or name another database with BANKING_DATABASE.",
        )
    if not look.has_customer:
        return _warning(
            "database",
            f"{where} has no customer {one_line(repr(settings.customer), LINE)}: no host is served",
            "Set BANKING_CUSTOMER to one it has, or unset it for the first.",
        )
    said = str(where)
    if isinstance(where, Path):
        said += _in_use(where.resolve())
        if os.name == "posix" and where.stat().st_mode & 0o077:
            return _warning(
                "database", f"{said}; others can read it", "The next start closes it to them."
            )
    if not look.checked:
        return _ok("database", said, "`banking-server database check` looks whether all is well.")
    return _ok("database", f"{said}, undamaged")


def _closed_above(path: Path) -> Path | None:
    """Return the nearest folder of a file to be made, if this user can make nothing in it."""
    folder = next(above for above in path.absolute().parents if os.path.lexists(above))
    open_to_us = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    return None if open_to_us else folder


def _in_use(path: Path) -> str:
    """Return who has a database open, as the rest of a sentence."""
    if users := _processes_with({str(path)}):
        return f", in use by {users}"
    # They are there while somebody has it open, and after a crash.
    return ", in use or not closed in order" if _is_there(beside(path, "-wal")) else ""


def _secret(settings: Settings, *, usable: bool) -> Finding:
    path, where = settings.secret_path, settings.database
    if settings.secret is None and isinstance(where, Path) and not _is_there(path):
        if not usable:
            return _warning("secret", f"{path} is not there", "Put the database right first.")
        if not where.exists() or where.stat().st_size == 0:
            return _ok("secret", f"{path} is not there yet; the first start makes it")
        return _warning(
            "secret",
            f"{path} is not there, but the database is",
            "Put the old one back: with a new one, which the next start makes, what was given out "
            "before is worth nothing.",
        )
    try:
        tokens = Tokens.of(settings, load_keys(settings, may_make=False))
    except SecretUnavailable as error:
        return _problem("secret", str(error), "Put that right, or set BANKING_SECRET.")
    place = f"{path}" if settings.secret is None else "BANKING_SECRET"
    if settings.issuer is not None:
        return _ok("secret", f"{place}; tokens are those of {settings.issuer}")
    tokens.mint("doctor", [], now=utc_now(), lifetime=timedelta(seconds=1))
    return _ok("secret", f"{place}, which signs tokens")


def _port(check: str, host: str, port: int, option: str) -> Finding:
    try:
        check_address(host, port)
    except CommandFailed as error:
        problem = one_line(str(error), LINE).rstrip(".")
    else:
        return _ok(check, f"{port} of {host} is free")
    well = anyio.run(_health, f"http://{host}:{port}/health")
    if well is not None:
        return _ok(check, f"{port} of {host}: a banking-server is there already, and {well}")
    by = _processes_with(_listening(port))
    return _warning(
        check, f"{problem}{f' by {by}' if by else ''}", f"Choose another port with {option}."
    )


async def _health(url: str) -> str | None:
    """Return how a server of ours says it is, None if it is another's or says nothing."""
    try:
        answer = (await _get(url)).json()
    except _NO_ANSWER:
        return None
    status = answer.get("status") if isinstance(answer, dict) else None
    return {"ok": "is well", "unavailable": "has no database"}.get(str(status))


def _hosts(machine: Machine) -> Iterator[Finding]:
    found = [host for host in HOSTS.values() if host.seems_installed(machine)]
    for host in found:
        yield _host(host, host.file(machine))
    if not found:
        yield _ok("hosts", "none was found here", "`banking-server call` and `chat` need none.")


def _host(host: Host, path: Path) -> Finding:
    write = f"`banking-server install {host.name}`"
    if host.name is HostName.INSPECTOR and (old := _old_node()):
        return _warning(
            host.name,
            f"{host.title}: Node here is {old}",
            f"Install Node {INSPECTOR_NODE} or later, or the npm package `node` of that version.",
        )
    try:
        configuration = Configuration.read(host, path)
        ours = {name: configuration.servers()[name] for name in configuration.ours()}
    except Unreadable as problem:
        return _warning(
            host.name,
            f"{host.title}: {path} cannot be used: {problem}",
            "Put the file right: until then the host may see no servers at all.",
        )
    for name, entry in ours.items():
        program = str(entry.get("command", entry.get("cmd")))
        if shutil.which(program) is None:
            return _warning(
                host.name,
                f"{host.title}: {name} starts {program}, which is not there",
                f"{write} writes it anew.",
            )
    if not ours:
        return _ok(host.name, f"{host.title} is here, without this server", f"{write} adds it.")
    return _ok(host.name, f"{host.title} has this server, as {', '.join(ours)} in {path}")


def _old_node() -> str | None:
    """Return the version of Node if it is too old for the Inspector, or none can be told."""
    try:
        said = subprocess.run(
            ["node", "--version"],  # noqa: S607 - the one that `npx` would take
            capture_output=True,
            text=True,
            timeout=SECONDS,
        ).stdout.strip()
        return said if int(said.removeprefix("v").partition(".")[0]) < INSPECTOR_NODE else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return "of no version that can be told"


def _model() -> Finding:
    if not is_configured():
        return _ok(
            "model",
            "none is configured; only `chat` needs one",
            "BANKING_MODEL_URL and BANKING_MODEL_NAME name one.",
        )
    try:
        settings = load_model_settings()
    except ModelNotConfigured as error:
        return _problem("model", str(error), "Set it right, or unset all BANKING_MODEL_ variables.")
    return anyio.run(_endpoint, settings)


async def _endpoint(settings: ModelSettings) -> Finding:
    where = without_user(settings.url)
    try:
        answer = await _get(f"{settings.url.rstrip('/')}/models", settings.key)
    except _NO_ANSWER:
        return _warning(
            "model", f"nothing answers at {where}", "Start it, or set BANKING_MODEL_URL right."
        )
    if answer.status_code in (401, 403):
        return _warning(
            "model", f"{where} does not take the key", "Set BANKING_MODEL_KEY to its key."
        )
    if answer.status_code >= 500:
        return _warning("model", f"{where} answers HTTP {answer.status_code}", "Look at its log.")
    names = _names_in(answer)
    if not names:
        return _ok("model", f"{where} answers, and does not list its models")
    if settings.name not in (known for name in names for known in (name, name.partition(":")[0])):
        more = ", \N{HORIZONTAL ELLIPSIS}" if len(names) > _LISTED else ""
        return _warning(
            "model",
            f"{where} has no model {settings.name}",
            f"Set BANKING_MODEL_NAME to one it has: {one_line(', '.join(names[:_LISTED]), LINE)}"
            f"{more}.",
        )
    return _ok("model", f"{settings.name} is at {where}")


def _names_in(answer: httpx2.Response) -> list[str]:
    try:
        listed = answer.json()["data"]
        return [model["id"] for model in listed if isinstance(model["id"], str)]
    except (ValueError, TypeError, KeyError):
        return []


_NO_ANSWER: Final = (httpx2.HTTPError, httpx2.StreamError, TimeoutError, OSError, ValueError)


async def _get(url: str, key: SecretStr | None = None) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    with anyio.fail_after(SECONDS):
        async with BoundedHttpClient(headers=headers, timeout=SECONDS) as client:
            return await client.get(url)


def _listening(port: int) -> set[str]:
    """Return the sockets that listen on a port, as Linux names them; empty elsewhere."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                local, state, inode = (line.split()[at] for at in (1, 3, 9))
                if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{inode}]")
    return found


def _processes_with(files: set[str]) -> str:
    """Return which processes have one of these open, as far as Linux tells this user."""
    found = []
    for process in sorted(Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if any(os.readlink(held) in files for held in (process / "fd").iterdir()):
                name = one_line((process / "comm").read_text(), LINE)
                found.append(f"process {process.name} ({name})")
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return f"{', '.join(found[:_LISTED])}{more}"


def _is_there(path: Path | URL | None) -> bool:
    return isinstance(path, Path) and path.exists()
