"""`banking-server call` as the victim: what a server sends neither steers, hangs, nor fills it."""

import sys
from collections.abc import Iterator

import pytest

from banking_server.host import timeouts

from ..kit import hostile
from ..kit.command import Cli
from ..kit.hostile import MODES, SAID, STEERS, hostile_server

ESCAPES = sorted({name for name in MODES if name.startswith("escapes_")} - {"escapes_in_stderr"})


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with hostile_server() as found:
        yield found


@pytest.mark.parametrize(
    ("does", "more"), [*((name, ()) for name in ESCAPES), ("escapes_in_results", ("--json",))]
)
def test_no_text_of_a_server_steers_the_terminal(
    cli: Cli, origin: str, does: str, more: tuple[str, ...]
) -> None:
    followed = ("--trust-hints", "--follow-unadvertised")
    ended = cli("call", "first", *followed, *more, "--url", f"{origin}/{does}")
    assert not STEERS.search(ended.out + ended.err), ended
    # Nor does a line of its own begin where ours do.
    assert "\nforged" not in ended.out + ended.err
    assert "Traceback" not in ended.err
    shown = does != "escapes_in_names"
    assert (SAID.lower() in (ended.out + ended.err).lower()) is shown


def test_a_servers_standard_error_is_shown_and_steers_nothing(cli: Cli) -> None:
    ended = cli("call", "first", "--", sys.executable, hostile.__file__, "escapes_in_stderr")
    assert ended.code == 0
    assert SAID in ended.err
    # Each line is marked, so that none looks like ours.
    assert {line[:9] for line in ended.err.splitlines()} == {"[server] "}
    assert not STEERS.search(ended.err)


@pytest.mark.parametrize(
    ("does", "code", "told"),
    [
        ("mute", 2, "it did not answer within 1 s"),
        ("silent", 1, 'the call of "first" (call 1) failed: the time allowed for it ran out'),
        ("listless", 1, "the time allowed for it ran out"),
    ],
)
def test_a_server_that_does_not_answer_is_left(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, origin: str, does: str, code: int, told: str
) -> None:
    if does == "mute":
        monkeypatch.setattr(timeouts, "DEFAULT", timeouts.Timeouts(connect=1))
    ended = cli("call", "first", "--timeout", "1", "--url", f"{origin}/{does}")
    assert ended.code == code
    assert told in ended.out + ended.err


@pytest.mark.parametrize("command", [("call", "first"), ("chat",)])
@pytest.mark.parametrize("url", ["http://192.0.2.1/mcp", "http://user:in-the-url@192.0.2.1/mcp"])
def test_no_token_goes_to_another_computer_in_the_clear(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], url: str
) -> None:
    monkeypatch.setenv("BANKING_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
    if "@" not in url:
        monkeypatch.setenv("BANKING_TOKEN", "secret-token")
    refused = cli(*command, "--url", url)
    assert refused.code == 2
    assert "The token would go to 192.0.2.1 unencrypted" in refused.err
    assert "in-the-url" not in refused.err
    monkeypatch.setattr(timeouts, "DEFAULT", timeouts.Timeouts(connect=0.1))
    allowed = cli(*command, "--url", url, "--insecure")
    assert "Cannot talk to http://192.0.2.1/mcp" in allowed.err
