"""`banking-server doctor`: what a start would fail at is told, and nothing is changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..kit.command import Cli
from ..kit.servers import free_port

SECRET = "for-tests-only-0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _a_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_PORT", str(free_port()))


def found(cli: Cli, *options: str, fails: bool = False) -> dict[str, tuple[str, str]]:
    """Return how each thing is and what is said of it; the exit code says if a start would fail."""
    ended = cli(*options, "doctor")
    assert (ended.err, ended.code) == ("", 1 if fails else 0), ended
    told: dict[str, tuple[str, str]] = {}
    for line in ended.out.splitlines():
        status, check, message = line.split(maxsplit=2)
        told[check.removesuffix(":")] = (status, message)
    assert fails == any(status == "problem" for status, _ in told.values())
    return told


def test_where_nothing_is_yet_a_start_makes_it(cli: Cli, database: Path) -> None:
    told = found(cli)
    assert [*told] == ["settings", "database", "secret", "port"]
    assert {status for status, _ in told.values()} == {"ok"}
    assert told["database"][1] == f"{database} is not there yet; the first start makes it"
    assert told["secret"][1] == f"{database}.secret is not there; a start makes it"
    assert [*database.parent.iterdir()] == []


@pytest.mark.usefixtures("created")
def test_a_good_database_and_secret_are_left_as_they_are(cli: Cli, database: Path) -> None:
    before = {path.name for path in database.parent.iterdir()}
    told = found(cli, "--customer", "CUST002")
    assert told["database"] == ("ok", str(database))
    assert told["secret"] == ("ok", f"{database}.secret")
    assert {path.name for path in database.parent.iterdir()} == before


def test_the_settings_in_force_are_told_without_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKING_CODES", "desk")
    monkeypatch.setenv("BANKING_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("BANKING_ALLOWED_HOSTS", "one.example, two.example")
    monkeypatch.setenv("BANKING_SECRET", SECRET)
    ended = cli("--database", "postgresql://ada:hidden@127.0.0.1:1/bank", "doctor")
    assert ended.code == 1
    settings = ended.out.splitlines()[0]
    for told in ("CODES=desk", "ALLOWED_HOSTS=one.example,two.example"):
        assert f"BANKING_{told}" in settings
    assert "LOG_LEVEL" not in settings
    assert "secret: BANKING_SECRET" in ended.out
    assert SECRET not in ended.out
    assert "hidden" not in ended.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda database: database.write_bytes(b"x" * 5_000), "not a database"),
        (lambda database: database.unlink(), "not there, but a secret is"),
    ],
)
@pytest.mark.usefixtures("created")
def test_a_database_that_no_start_can_use(
    cli: Cli, database: Path, change: Callable[[Path], None], message: str
) -> None:
    change(database)
    assert message in found(cli, fails=True)["database"][1]


@pytest.mark.usefixtures("created")
def test_a_customer_whom_the_bank_does_not_have(cli: Cli) -> None:
    told = found(cli, "--customer", "CUST9\x1b", fails=True)["database"][1]
    assert "has no customer 'CUST9" in told
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("variable", "check"), [("BANKING_PORT", "settings"), ("BANKING_MODEL_URL", "model")]
)
def test_a_setting_that_cannot_be_used(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, check: str
) -> None:
    monkeypatch.setenv(variable, "none")
    assert variable in found(cli, fails=True)[check][1]
