"""Mistakes of whoever starts the server: one line each, before anything is served; and tokens."""

import socket
import sys
from pathlib import Path

import anyio
import jwt
import pytest

from banking_server.server import serving
from banking_server.server.keys import load_keys
from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens

from ..kit.command import Cli
from .support import one_line


@pytest.mark.parametrize("arguments", [("chat",), (), ("serve", "--http")])
def test_a_configured_model_needs_its_extra(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setenv("BANKING_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BANKING_MODEL_NAME", "any")
    assert "pip install '.[model]'" in one_line(cli(*arguments))


def test_an_unknown_customer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no customer 'CUST999'" in one_line(cli("--customer", "CUST999"))
    monkeypatch.setenv("BANKING_CUSTOMER", "\u001b[2J")
    assert "\x1b" not in one_line(cli())


def test_a_port_that_cannot_be_used(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = cli("serve", "--http", "--port", port, "--workers", "2")
        assert f"port {port}: address already in use" in one_line(refused)
    assert "--port: should be less" in one_line(cli("serve", "--http", "--port", "99999"))
    monkeypatch.setenv("BANKING_PORT", "99999")
    assert "BANKING_PORT: should be less" in one_line(cli("serve", "--http"))


def test_the_operator_is_told_what_others_can_do(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "serve", lambda *_: None)
    monkeypatch.setenv("BANKING_HOST", "0.0.0.0")
    monkeypatch.setenv("BANKING_RESOURCE_URL", "https://bank.example/mcp")
    monkeypatch.setenv("BANKING_ISSUER", "https://tokens.example")
    monkeypatch.setenv("BANKING_JWKS_URL", "https://tokens.example/keys")
    with socket.socket() as free:
        free.bind(("0.0.0.0", 0))
        monkeypatch.setenv("BANKING_PORT", str(free.getsockname()[1]))
    open_to_all = cli("serve", "--http").err
    assert "has no TLS, and no limits on requests" in open_to_all
    assert "so the model can confirm a transfer." in open_to_all
    monkeypatch.setenv("BANKING_HOST", "127.0.0.1")
    loopback = cli("serve", "--http", "--codes", "desk").err
    assert "TLS" not in loopback
    assert "so the model can confirm" not in loopback


@pytest.mark.usefixtures("created")
def test_token_prints_nothing_but_the_token(cli: Cli, database: Path) -> None:
    minted = cli("token", "--customer", "CUST002")
    assert (minted.code, minted.err, minted.out.count("\n")) == (0, "", 1)
    settings = load_settings(database=database)
    tokens = Tokens.of(settings, load_keys(settings))
    access = anyio.run(tokens.verify_token, minted.out.strip())
    assert access is not None
    assert (access.subject, access.scopes) == ("CUST002", ["bank:read", "bank:transfer"])
    claims = jwt.decode(minted.out.strip(), options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 3600
    assert "no customer 'CUST999'" in one_line(cli("token", "--customer", "CUST999"))


def test_trial_tokens_are_for_loopback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    mint = ("token", "--customer", "CUST001")
    monkeypatch.setenv("BANKING_RESOURCE_URL", "https://bank.example/mcp")
    monkeypatch.setenv("BANKING_ISSUER", "https://login.example")
    monkeypatch.setenv("BANKING_JWKS_URL", "https://login.example/jwks")
    assert "only the tokens of https://login.example:" in one_line(cli(*mint))
