"""Settings: where they come from, and what is said about a bad one."""

from decimal import Decimal
from pathlib import Path

import pytest

from banking_server.server.settings import PREFIX, SettingsError, load_settings

pytestmark = pytest.mark.quick

ISSUER = {"issuer": "https://login.example", "jwks_url": "https://login.example/jwks"}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("PORT", "abc", "must be a whole number, not 'abc'"),
        ("PORT", "0", "greater than or equal to 1, not '0'"),
        ("SECRET", "too short to be one", "at least 32 characters"),
        ("APPROVAL_THRESHOLD", "1.234", "two decimals"),
        ("APPROVAL_THRESHOLD", "-1", "not '-1'"),
        ("RESOURCE_URL", "ftp://bank.example/mcp", "http or https"),
        ("RESOURCE_URL", "http://bank.example/mcp", "an https URL, except on loopback, not 'http:"),
        ("JWKS_URL", "https://[login/jwks", "must be an http or https URL"),
        *[
            ("ISSUER", url, "must be an http or https URL")
            for url in ("https:login.example", "https:/login.example", "https:///login.example/a")
        ],
        ("JWKS_URL", "https://me:word@login.example/jwks", "without a user or password"),
        ("CODES", "nowhere", "'result', 'asked' or 'desk', not 'nowhere'"),
        ("LOG_LEVEL", "LOUD", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        ("DATABASE", ":memory:", "must be the path of a file"),
        ("DATABASE", "file::memory:?cache=shared", "must be the path of a file"),
        ("DATABASE", "~nobody-of-that-name/bank.db", "home directory"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    words = str(refused.value)
    assert words.startswith(f"{PREFIX}{name}: ")
    assert problem in words
    assert "\n" not in words
    if name == "SECRET":
        assert value not in words
    assert "me:word" not in words


def test_beyond_loopback_clients_need_to_be_told_the_url() -> None:
    with pytest.raises(SettingsError, match=r"^BANKING_RESOURCE_URL: .*'0\.0\.0\.0'"):
        load_settings(host="0.0.0.0")
    settings = load_settings(resource_url="https://bank.example/mcp", host="0.0.0.0", **ISSUER)
    assert settings.resource == "https://bank.example/mcp"


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0", "resource_url": "http://127.0.0.1:8000/mcp"},
        {"resource_url": "https://bank.example/mcp"},
        {"jwks_url": "https://login.example/jwks"},
    ],
)
def test_trial_tokens_are_for_loopback(options: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"^BANKING_ISSUER: must name .* BANKING_JWKS_URL"):
        load_settings(**options)
    load_settings(**{**ISSUER, **options})


def test_an_issuer_has_keys() -> None:
    with pytest.raises(SettingsError, match=r"^BANKING_JWKS_URL: must say"):
        load_settings(issuer="https://login.example")


def test_options_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_PORT", "9000")
    assert load_settings(port=9001).port == 9001
    assert load_settings(port=None).port == 9000
    monkeypatch.setenv("BANKING_PORT", "")
    assert load_settings().port == 8000, "an empty variable is an unset one"


def test_only_a_server_that_is_alone_has_sessions(tmp_path: Path) -> None:
    file = tmp_path / "bank.db"
    assert load_settings(database=file).sessions
    assert not load_settings(database=file, workers=2).sessions
    # Several servers may share it, behind a load balancer.
    assert not load_settings(database="postgresql://bank.example/bank", secret="s" * 32).sessions


def test_the_rules_are_exact() -> None:
    rules = load_settings(approval_threshold=Decimal("0.29"), transfer_expiry=5).rules()
    assert rules.approval_threshold_minor == 29
    assert rules.transfer_expiry.total_seconds() == 5


def test_a_worker_gets_the_settings_through_its_environment_but_for_the_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BANKING_TRANSFER_EXPIRY", "30")
    parent = load_settings(
        database=tmp_path / "a bank?.db",
        port=9000,
        approval_threshold="123.40",
    )
    for name, value in parent.environment().items():
        monkeypatch.setenv(name, value)
    assert load_settings() == parent
    with_secret = load_settings(secret="s" * 40)
    assert "s" * 40 not in repr(with_secret) + str(with_secret.environment())
