"""`banking-server doctor`: what it finds, what it says to do, and that it changes nothing."""

import json
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from banking_server.bank import looking
from banking_server.bank.storage import Bank
from banking_server.cli import checkup

from ..kit.command import Cli
from ..kit.servers import free_port
from ..kit.serving import running
from ..kit.terminal import Terminal
from .support import at_the_bank

Findings = dict[str, dict[str, Any]]
Doctor = Callable[..., Findings]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody's, with no programs, and ports that are free."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("CLAUDE_CONFIG_DIR", "GOOSE_PATH_ROOT", "MCP_CATALOG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("BANKING_PORT", str(free_port()))
    monkeypatch.setattr(checkup, "PROXY_PORT", free_port())
    return home


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new database and its secret."""
    folder = tmp_path_factory.mktemp("template")

    async def leave(_: Bank) -> None:
        pass

    at_the_bank(folder / "bank.db", leave)
    return folder


@pytest.fixture
def created(template: Path, database: Path) -> None:
    """Let the database be there, and its secret."""
    for file in template.iterdir():
        shutil.copy2(file, database.parent)


@pytest.fixture
def doctor(cli: Cli) -> Doctor:
    """Return what was found of each thing. It is on standard output, whatever it is."""

    def examine(*options: str) -> Findings:
        ended = cli("doctor", "--json", *options)
        assert ended.err == ""
        told = json.loads(ended.out)
        found = {one["check"]: one for one in told["checks"]}
        assert len(found) == len(told["checks"])
        problems = [one for one in found.values() if one["status"] == "problem"]
        assert (told["ok"], ended.code) == ((False, 1) if problems else (True, 0))
        for one in found.values():
            assert one["remedy"] or one["status"] == "ok"
        return found

    return examine


def program(folder: Path, name: str, says: str = "") -> None:
    """Put a program into a folder that says something."""
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextmanager
def serving(path: str, status: int, body: bytes) -> Iterator[str]:
    """Answer one path over HTTP in one way, and any other with 404; its origin."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(status if self.path == path else 404)
            self.end_headers()
            self.wfile.write(body)

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as origin:
        yield origin


# --- the database, and the secret -----------------------------------------------------------------


def test_where_nothing_is_yet_all_is_well_and_stays_so(
    cli: Cli, doctor: Doctor, tmp_path: Path
) -> None:
    ended = cli("doctor")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"ok       python: Python {sys.version_info[0]}.")
    assert "\nok       hosts: none was found here\n" in ended.out
    assert ended.out.endswith("\nAll is well.\n")
    assert "\x1b" not in ended.out
    found = doctor()
    assert [*found] == [
        *("python", "sqlite", "database", "secret", "port", "proxy port", "hosts", "model")
    ]
    assert {one["status"] for one in found.values()} == {"ok"}
    assert found["database"]["message"].endswith(
        "bank.db is not there yet; the first start makes it"
    )
    assert found["secret"]["message"].endswith("is not there yet; the first start makes it")
    assert state_of(tmp_path) == {}


@pytest.mark.usefixtures("created")
def test_a_good_database_and_secret_are_looked_at_and_left(
    doctor: Doctor, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state_of(database.parent)
    found = doctor()
    assert found["database"]["message"] == f"{database}, undamaged"
    assert found["secret"]["message"] == f"{database}.secret, which signs tokens"
    assert state_of(database.parent) == before
    monkeypatch.setenv("BANKING_ISSUER", "https://login.example")
    monkeypatch.setenv("BANKING_JWKS_URL", "https://login.example/jwks")
    assert doctor()["secret"]["message"].endswith("; tokens are those of https://login.example")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says who has a file open")
def test_who_has_the_database_open(doctor: Doctor, database: Path) -> None:
    async def meanwhile(_: Bank) -> None:
        found = await anyio.to_thread.run_sync(doctor)
        said = found["database"]["message"]
        assert f", in use by process {os.getpid()} (" in said
        assert said.endswith("), undamaged")

    at_the_bank(database, meanwhile)
    database.with_name("bank.db-wal").touch()
    found = doctor()["database"]
    assert (found["status"], "not closed in order" in found["message"]) == ("ok", True)
    assert "database check" in found["remedy"]


def damage(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'audit_event'"
        ).fetchall()
    with database.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 500)


def version(number: int) -> Callable[[Path], None]:
    def write(database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(f"PRAGMA user_version = {number}")

    return write


def another(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE letter (text)")


def folder(database: Path) -> None:
    database.unlink()
    database.mkdir()


@pytest.mark.parametrize(
    ("change", "status", "told"),
    [
        (damage, "problem", "is damaged"),
        (lambda database: database.write_bytes(b"x" * 5_000), "problem", "not a database"),
        (another, "problem", "of another program"),
        (folder, "problem", "is a folder"),
        (version(99), "problem", "another version"),
        (lambda database: database.write_bytes(b""), "problem", "not there, but a secret is"),
        (lambda database: database.unlink(), "problem", "not there, but a secret is"),
        (lambda database: database.chmod(0o644), "warning", "others can read it"),
    ],
)
@pytest.mark.usefixtures("created")
def test_a_database_that_is_not_as_it_should_be(
    doctor: Doctor, database: Path, change: Callable[[Path], None], status: str, told: str
) -> None:
    change(database)
    found = doctor()["database"]
    assert (found["status"], told in found["message"]) == (status, True), found


@pytest.mark.usefixtures("created")
def test_a_database_that_nobody_may_write_to(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking.os, "access", lambda *_: False)
    assert "cannot be written to" in doctor()["database"]["message"]


def test_a_database_that_can_be_made_nowhere(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").touch()
    found = doctor("--database", str(tmp_path / "letter" / "new" / "bank.db"))["database"]
    assert (found["status"], found["message"].endswith(f"in {tmp_path / 'letter'}")) == (
        "problem",
        True,
    )
    monkeypatch.setattr(checkup.os, "access", lambda *_: False)
    found = doctor("--database", str(tmp_path / "new" / "bank.db"))["database"]
    assert found["message"].endswith(f"no file can be made in {tmp_path}")


@pytest.mark.usefixtures("created")
def test_a_customer_whom_the_bank_does_not_have(doctor: Doctor) -> None:
    assert doctor("--customer", "CUST002")["database"]["status"] == "ok"
    found = doctor("--customer", "CUST9\x1b")["database"]
    assert (found["status"], "has no customer 'CUST9" in found["message"]) == ("warning", True)
    assert "\x1b" not in found["message"]
    assert doctor("--customer", "CUST009")["database"]["status"] == "warning"


@pytest.mark.usefixtures("created")
def test_without_a_secret_what_is_said_of_it_fits_the_database(
    doctor: Doctor, database: Path
) -> None:
    database.with_name("bank.db.secret").unlink()
    database.write_bytes(b"")
    found = doctor()
    assert found["secret"]["message"].endswith("is not there yet; the first start makes it")
    database.write_bytes(b"x" * 5_000)
    assert doctor()["secret"]["remedy"] == "Put the database right first."


@pytest.mark.usefixtures("created")
def test_a_large_database_is_not_looked_through_to_the_end(database: Path) -> None:
    look = anyio.run(lambda: looking.look_at(database, seconds=-1))
    assert not look.checked


@pytest.mark.usefixtures("created")
def test_a_secret_that_is_not_as_it_should_be(
    doctor: Doctor, database: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    secret = database.with_name("bank.db.secret")
    secret.chmod(0o644)
    found = doctor()["secret"]
    assert (found["status"], "can be read by others" in found["message"]) == ("problem", True)
    secret.unlink()
    found = doctor()["secret"]
    assert (found["status"], "but the database is" in found["message"]) == ("warning", True)
    assert cli("doctor").out.endswith("\n0 problems, 1 warning.\n")
    monkeypatch.setenv("BANKING_SECRET", "for-tests-only-0123456789abcdef0123456789abcdef")
    assert doctor()["secret"]["message"] == "BANKING_SECRET, which signs tokens"
    assert "0123456789" not in cli("doctor").out


def test_sqlite_where_it_is_mended(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    mended = checkup.WAL_RESET_MENDED
    monkeypatch.setattr(checkup, "SQLITE_VERSION", (3, 51, 2))
    assert "(mended in 3.51.3)" in doctor()["sqlite"]["message"]
    monkeypatch.setattr(checkup, "SQLITE_VERSION", mended)
    assert doctor()["sqlite"]["message"] == "SQLite 3.51.3"


def test_a_setting_that_cannot_be_used(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_PORT", "none")
    found = doctor()
    assert (found["settings"]["status"], "BANKING_PORT" in found["settings"]["message"]) == (
        "problem",
        True,
    )
    assert not {"database", "secret", "port"} & found.keys()


# --- who else is here -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b'{"status": "ok"}', "ok", ": a banking-server is there already, and is well"),
        (b'{"status": "unavailable"}', "ok", ", and has no database"),
        (b'{"status": "odd"}', "warning", "address already in use"),
        (b"[]", "warning", "address already in use"),
    ],
)
def test_a_port_that_is_taken(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, body: bytes, status: str, told: str
) -> None:
    with serving("/health", 200, body) as origin:
        monkeypatch.setenv("BANKING_PORT", origin.rpartition(":")[2])
        found = doctor()["port"]
    assert (found["status"], told in found["message"]) == (status, True), found
    if status == "warning" and sys.platform == "linux":
        assert f" by process {os.getpid()} (" in found["message"]


def test_a_port_whose_owner_says_nothing(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(checkup, "PROXY_PORT", taken.getsockname()[1])
        found = doctor()["proxy port"]
    assert (found["status"], "tool-chaining-proxy" in found["remedy"]) == ("warning", True)


def test_each_host_that_is_here(doctor: Doctor, home: Path) -> None:
    program(home / "bin", "banking-server")
    for place, text in {
        ".claude.json": {"mcpServers": {"bank": {"command": "banking-server", "args": []}}},
        ".cursor/mcp.json": {"mcpServers": {"mine": {"command": "/gone/banking-server"}}},
        "Code/User/mcp.json": {"servers": {"other": {"command": "something"}}},
        "Claude/claude_desktop_config.json": None,
    }.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text("{ not JSON" if text is None else json.dumps(text))
    found = doctor()
    assert "hosts" not in found
    assert found["claude-code"]["message"] == (
        f"Claude Code has this server, as bank in {home / '.claude.json'}"
    )
    assert (found["cursor"]["status"], found["cursor"]["message"]) == (
        "warning",
        "Cursor: mine starts /gone/banking-server, which is not there",
    )
    assert (found["vscode"]["status"], found["vscode"]["remedy"]) == (
        "ok",
        "`banking-server install vscode` adds it.",
    )
    broken = found["claude-desktop"]
    assert (broken["status"], "cannot be used: " in broken["message"]) == ("warning", True)


@pytest.mark.parametrize(
    ("node", "status", "told"),
    [
        ("v20.20.2", "warning", "Node here is v20.20.2"),
        ("v22.1.0", "ok", "is here, without this server"),
        ("what?", "warning", "of no version that can be told"),
    ],
)
def test_the_node_that_the_inspector_needs(
    doctor: Doctor, home: Path, node: str, status: str, told: str
) -> None:
    program(home / "bin", "npx")
    program(home / "bin", "node", node)
    found = doctor()["inspector"]
    assert (found["status"], told in found["message"]) == (status, True), found


@pytest.mark.parametrize(
    ("http", "body", "status", "told"),
    [
        (200, b'{"data": [{"id": "qwen3:latest"}]}', "ok", "qwen3 is at http://127.0.0.1"),
        (200, b'{"data": [{"id": "a"}, {"id": "b\\u001b"}]}', "warning", "has no model qwen3"),
        (200, b'{"data": [7]}', "ok", "does not list its models"),
        (200, b"no JSON", "ok", "does not list its models"),
        (401, b"", "warning", "does not take the key"),
        (404, b"", "ok", "does not list its models"),
        (500, b"", "warning", "answers HTTP 500"),
    ],
)
def test_the_models_endpoint(
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    http: int,
    body: bytes,
    status: str,
    told: str,
) -> None:
    monkeypatch.setenv("BANKING_MODEL_NAME", "qwen3")
    monkeypatch.setenv("BANKING_MODEL_KEY", "the-key-of-the-model")
    with serving("/v1/models", http, body) as origin:
        monkeypatch.setenv("BANKING_MODEL_URL", f"{origin}/v1/")
        found = doctor()["model"]
    assert (found["status"], told in found["message"]) == (status, True), found
    assert "the-key" not in str(found)
    assert "\x1b" not in str(found)


def test_a_model_that_is_not_there(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_MODEL_NAME", "qwen3")
    found = doctor()["model"]
    assert (found["status"], "BANKING_MODEL_URL" in found["message"]) == ("problem", True)
    monkeypatch.setenv("BANKING_MODEL_URL", f"http://me:hidden@127.0.0.1:{free_port()}/v1")
    found = doctor()["model"]
    assert (found["status"], "nothing answers at" in found["message"]) == ("warning", True)
    assert "hidden" not in str(found)


def test_in_a_narrow_terminal_it_can_be_read(database: Path, home: Path) -> None:
    terminal = Terminal(
        [sys.executable, "-m", "banking_server", "doctor", "--database", str(database)],
        columns=40,
        HOME=str(home),
        PATH=str(home / "bin"),
    )
    assert terminal.finish() in (0, 1)
    assert "\x1b[32mok       \x1b[0m\x1b[1mpython: \x1b[0m" in terminal.screen
    assert "\n         BANKING_MODEL_URL and" in terminal.screen.replace("\x1b[2m", "")
