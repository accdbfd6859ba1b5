"""Mistakes of whoever starts the server: one line each, before anything is served."""

import socket
from pathlib import Path

import pytest

from banking_server import serving

from ..kit.command import Cli
from .support import one_line

SERVING: tuple[tuple[str, ...], ...] = ((), ("serve", "--http"))


@pytest.mark.parametrize("arguments", SERVING)
def test_a_secret_that_others_can_read(
    cli: Cli, database: Path, arguments: tuple[str, ...]
) -> None:
    assert cli("database", "create").code == 0
    secret = database.with_name("bank.db.secret")
    secret.write_text("s" * 40)
    secret.chmod(0o644)
    assert "chmod 600" in one_line(cli(*arguments))


def test_an_unknown_customer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no customer 'CUST999'" in one_line(cli("--customer", "CUST999"))
    monkeypatch.setenv("BANKING_CUSTOMER", "\u001b[2J")
    assert "\x1b" not in one_line(cli())


def test_a_busy_port(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = cli("serve", "--http", "--port", port, "--workers", "2")
        assert f"port {port}: address already in use" in one_line(refused)


def test_beyond_loopback_it_says_what_has_to_stand_in_front(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "serve", lambda app, listening: listening.close() is None)
    monkeypatch.setenv("BANKING_HOST", "0.0.0.0")
    monkeypatch.setenv("BANKING_RESOURCE_URL", "https://bank.example/mcp")
    monkeypatch.setenv("BANKING_ISSUER", "https://tokens.example")
    monkeypatch.setenv("BANKING_JWKS_URL", "https://tokens.example/keys")
    with socket.socket() as free:
        free.bind(("0.0.0.0", 0))
        monkeypatch.setenv("BANKING_PORT", str(free.getsockname()[1]))
    assert "TLS" in cli("serve", "--http").err
    monkeypatch.setenv("BANKING_HOST", "127.0.0.1")
    assert "TLS" not in cli("serve", "--http").err
