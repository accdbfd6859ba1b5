"""`banking-server doctor`: what a start would fail at is told, and nothing is changed."""

import json
from pathlib import Path

import pytest

from ..kit.bank import SECRET
from ..kit.command import Cli
from ..kit.servers import free_port


@pytest.fixture(autouse=True)
def _a_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_PORT", str(free_port()))


def found(cli: Cli, *options: str, fails: bool = False) -> dict[str, str]:
    """Return what is said of each thing; the exit code says if a start would fail."""
    ended = cli(*options, "doctor")
    assert (ended.err, ended.code) == ("", 1 if fails else 0), ended
    assert fails is any(line.startswith("problem  ") for line in ended.out.splitlines())
    told = [json.loads(line) for line in cli(*options, "doctor", "--json").out.splitlines()]
    assert fails is any(one["status"] == "problem" for one in told)
    lines = [line[9:].partition(": ") for line in ended.out.splitlines()]
    return {check: told for check, _, told in lines}


def test_doctor_says_what_the_first_start_will_create(cli: Cli, database: Path) -> None:
    told = found(cli)
    assert told["database"] == f"{database} does not exist yet; the first start creates it"
    assert told["secret"] == f"{database}.secret does not exist yet; the first start creates it"
    assert [*database.parent.iterdir()] == []


@pytest.mark.usefixtures("created")
def test_a_good_database_is_left_as_it_is(cli: Cli, database: Path) -> None:
    before = {path.name for path in database.parent.iterdir()}
    told = found(cli, "--customer", "CUST002")
    assert (told["database"], told["secret"]) == (str(database), f"{database}.secret")
    # Which codes a server in a host has, and which one over HTTP.
    assert told["codes in a host"].startswith("asked. ")
    assert "so the model can confirm a transfer." in told["codes over HTTP"]
    assert {path.name for path in database.parent.iterdir()} == before
    told = found(cli, "--customer", "CUST9\x1b", fails=True)
    assert "has no customer 'CUST9\\x1b'" in told["database"]
    database.write_bytes(b"x" * 5_000)
    assert "not a database" in found(cli, fails=True)["database"]
    database.unlink()
    assert "its secret does: create one" in found(cli, fails=True)["database"]


def test_the_settings_in_force_are_told_without_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKING_CODES", "desk")
    monkeypatch.setenv("BANKING_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("BANKING_COSTUMER", "CUST002")
    monkeypatch.setenv("BANKING_SECRET", SECRET)
    ended = cli("--database", "postgresql://ada:hidden@127.0.0.1:1/bank", "doctor")
    assert ended.code == 1
    settings = ended.out.splitlines()[0]
    assert ("CODES=desk" in settings, "LOG_LEVEL" in settings) == (True, False)
    assert "warning  settings: BANKING_COSTUMER is not a setting" in ended.out
    assert "Its entry needs --codes desk, which `install` prints now." in ended.out
    assert "secret: BANKING_SECRET" in ended.out
    assert SECRET not in ended.out
    assert "hidden" not in ended.out


@pytest.mark.parametrize(
    ("variable", "check"), [("BANKING_PORT", "settings"), ("BANKING_MODEL_URL", "model")]
)
def test_a_setting_that_cannot_be_used(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, check: str
) -> None:
    monkeypatch.setenv(variable, "none")
    assert variable in found(cli, fails=True)[check]
