"""What the environment of a command can be: without a home, with any proxy, in any encoding."""

import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from ..kit.command import Cli, run
from ..kit.model import scripted_model
from ..kit.servers import free_port
from .support import one_line

HOMELESS = [("doctor",), (), ("serve", "--http"), ("handoffs",), ("install", "cursor")]


@pytest.mark.parametrize("words", HOMELESS, ids=str)
def test_without_a_home_directory(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """In a container, a user need not be listed anywhere."""

    def unlisted(_: int) -> NoReturn:
        raise KeyError

    for name in ("HOME", "XDG_DATA_HOME", "BANKING_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BANKING_PORT", str(free_port()))
    monkeypatch.setattr(pwd, "getpwuid", unlisted)
    if words[:1] == ("install",):
        monkeypatch.setenv("BANKING_DATABASE", "~/bank.db")
    ended = cli(*words)
    said = ended.out if words == ("doctor",) else one_line(ended)
    assert "home directory" in said
    assert "BANKING_DATABASE" in said
    if words == ("doctor",):
        monkeypatch.setenv("BANKING_DATABASE", str(tmp_path / "bank.db"))
        assert cli("doctor").code == 0


PROXIES = {
    "ALL_PROXY": "socks://127.0.0.1:1",  # As GNOME sets it.
    "all_proxy": "socks5://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:bad",
}


@pytest.mark.parametrize("variable", PROXIES)
def test_a_proxy_is_for_other_computers(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, elsewhere: str, variable: str
) -> None:
    monkeypatch.setenv(variable, PROXIES[variable])
    assert cli("call", "order", "--url", elsewhere).code == 0
    refused = one_line(cli("tools", "--url", "https://192.0.2.1/mcp"))
    assert f"{variable} names a proxy that cannot be used here. " in refused
    monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
    with scripted_model(["Hello."]) as model:
        monkeypatch.setenv("BANKING_MODEL_URL", model.url)
        assert cli("chat", "--prompt", "Hi", "--url", elsewhere).out == "Hello.\n"
        monkeypatch.setenv("BANKING_MODEL_URL", "https://192.0.2.1/v1")
        assert variable in one_line(cli("chat", "--prompt", "Hi", "--url", elsewhere))


def test_an_encoding_without_a_character(elsewhere: str) -> None:
    arguments = '{"door": "\u96e8 \u2192"}'
    called = ("call", "order", "--arguments", arguments, "--url", elsewhere)
    for words in (called, (*called, "--json")):
        ended = run(*words, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert ended.returncode == 0, (ended.stdout, ended.stderr)
        assert "Traceback" not in ended.stderr
