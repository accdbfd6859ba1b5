"""Tokens for a trial, and the database file."""

from pathlib import Path

import anyio
import jwt
import pytest

from banking_server.bank import handoffs
from banking_server.bank.storage import Bank
from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens, load_keys

from ..kit.command import Cli
from .support import at_the_bank, one_line, wait_for_an_agent


def test_token_prints_nothing_but_the_token(cli: Cli, database: Path) -> None:
    minted = cli("token", "--customer", "CUST002", "--scope", "bank:read")
    assert (minted.code, minted.err) == (0, "")
    assert minted.out.count("\n") == 1
    settings = load_settings(database=database)
    access = Tokens.of(settings, load_keys(settings)).read(minted.out.strip())
    assert access is not None
    assert (access.subject, access.scopes) == ("CUST002", ["bank:read"])


def test_a_token_is_for_one_server(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_TOKEN_LIFETIME", "60")
    minted = cli("token", "--customer", "CUST001", "--url", "https://bank.example/mcp")
    claims = jwt.decode(minted.out.strip(), options={"verify_signature": False})
    assert (claims["aud"], claims["iss"]) == ("https://bank.example/mcp", "https://bank.example")
    assert claims["scope"] == "bank:read bank:transfer"
    assert claims["exp"] - claims["iat"] == 60


def test_no_token_for_a_stranger(cli: Cli) -> None:
    assert "no customer 'CUST999'" in one_line(cli("token", "--customer", "CUST999"))


def test_no_token_for_a_scope_that_does_not_exist(cli: Cli) -> None:
    refused = cli("token", "--customer", "CUST001", "--scope", "bank:everything")
    assert (refused.code, refused.out) == (2, "")


def test_the_database_is_where_the_options_or_the_environment_say(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cli("database", "path").out == f"{database}\n"
    assert cli("--database", str(tmp_path / "x"), "database", "path").out == f"{tmp_path / 'x'}\n"
    assert cli("database", "path", "--database", str(tmp_path / "y")).out == f"{tmp_path / 'y'}\n"
    monkeypatch.delenv("BANKING_DATABASE")
    default = cli("database", "path").out
    assert default.endswith("bank.db\n")
    assert not database.exists()


def test_reset_needs_a_yes_and_starts_anew(cli: Cli, database: Path) -> None:
    at_the_bank(database, wait_for_an_agent)
    assert "--yes" in one_line(cli("database", "reset"))
    assert "open" in cli("handoffs").out
    assert cli("database", "reset", "--yes").code == 0
    assert cli("handoffs").out == "No customer is waiting for an agent.\n"
    database.write_bytes(database.read_bytes()[:2000])  # damaged
    assert "damaged" in one_line(cli("handoffs"))
    assert cli("database", "reset", "--yes").code == 0
    assert cli("handoffs").code == 0


def test_reset_spares_a_file_of_another_program(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "letter.txt"
    other.write_text("Dear Ada, " * 50)
    refused = cli("--database", str(other), "database", "reset", "--yes")
    assert "not a database of this program" in one_line(refused)
    assert other.read_text() == "Dear Ada, " * 50


def test_reset_spares_a_database_in_use(cli: Cli, database: Path) -> None:
    async def meanwhile(bank: Bank) -> None:
        await handoffs.list_open_handoffs(bank)
        ended = await anyio.to_thread.run_sync(cli, "database", "reset", "--yes")
        assert "is in use" in one_line(ended)

    at_the_bank(database, meanwhile)
