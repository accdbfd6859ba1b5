"""Tokens for a trial."""

from pathlib import Path

import anyio
import jwt
import pytest

from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens, load_keys

from ..kit.command import Cli
from .support import one_line

pytestmark = pytest.mark.usefixtures("created")


def test_token_prints_nothing_but_the_token(cli: Cli, database: Path) -> None:
    minted = cli("token", "--customer", "CUST002")
    assert (minted.code, minted.err) == (0, "")
    assert minted.out.count("\n") == 1
    settings = load_settings(database=database)
    tokens = Tokens.of(settings, load_keys(settings))
    access = anyio.run(tokens.verify_token, minted.out.strip())
    assert access is not None
    assert (access.subject, access.scopes) == ("CUST002", ["bank:read", "bank:transfer"])
    claims = jwt.decode(minted.out.strip(), options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 3600


def test_trial_tokens_are_for_loopback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_RESOURCE_URL", "https://bank.example/mcp")
    assert "BANKING_ISSUER: must name" in one_line(cli("token", "--customer", "CUST001"))
    monkeypatch.setenv("BANKING_ISSUER", "https://login.example")
    monkeypatch.setenv("BANKING_JWKS_URL", "https://login.example/jwks")
    assert "only the tokens of https://login.example:" in one_line(
        cli("token", "--customer", "CUST001")
    )


def test_no_token_for_a_stranger(cli: Cli) -> None:
    assert "no customer 'CUST999'" in one_line(cli("token", "--customer", "CUST999"))
