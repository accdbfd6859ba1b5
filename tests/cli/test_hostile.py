"""`call` and `tools` as the victim: what a server sends neither steers, hangs, nor fills them."""

import sys
from collections.abc import Iterator

import pytest

from banking_server.client import timeouts

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


@pytest.mark.parametrize("command", [("call", "first"), ("chat",)])
@pytest.mark.parametrize("url", ["http://192.0.2.1/mcp", "http://user:in-the-url@192.0.2.1/mcp"])
def test_no_token_goes_to_another_computer_in_the_clear(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], url: str
) -> None:
    monkeypatch.setenv("BANKING_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
    if "@" not in url:
        monkeypatch.setenv("MCP_TOKEN", "secret-token")
    refused = cli(*command, "--url", url)
    assert refused.code == 2
    assert "The token would go to 192.0.2.1 unencrypted" in refused.err
    assert "in-the-url" not in refused.err
    monkeypatch.setattr(timeouts, "DEFAULT", timeouts.Timeouts(connect=0.1))
    allowed = cli(*command, "--url", url, "--insecure")
    assert "Cannot talk to http://192.0.2.1/mcp" in allowed.err


# --- `tools` -------------------------------------------------------------------------------------


def paragraphs(out: str) -> dict[str, list[str]]:
    """Return what is said of each tool, by the line with its names."""
    _, *tools = out.rstrip("\n").split("\n\n")
    return {tool.splitlines()[0]: [*map(str.strip, tool.splitlines()[1:])] for tool in tools}


def test_what_is_odd_hides_nothing_and_steers_nothing(cli: Cli, origin: str) -> None:
    listed = cli("tools", "--url", f"{origin}/odd_tools")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith("hostile 1: 7 tools (MCP 2025-11-25)\n")
    assert listed.out.splitlines()[-5:] == [
        "An entry of the tool list has no name, and is left out.",
        "",
        'The annotations of the tool "php" cannot be read, and do not count.',
        "",
        'The tool "twice" is listed twice, and is left out.',
    ]
    assert not STEERS.search(listed.out)
    assert "\nforged" not in listed.out
    assert max(map(len, listed.out.splitlines())) < 500
    called = cli("call", "first", "--url", f"{origin}/odd_tools")
    assert (called.code, "   done\n" in called.out) == (0, True), "no list takes a result away"
    tools = paragraphs(listed.out)
    unknown = ["may change or destroy something"]
    assert tools["bare"] == unknown
    assert tools["php"] == unknown
    assert tools["\u65e5\u672c\u8a9e"] == ["only reads, reaches out to other systems"]
    assert tools["pay"] == ["may move money"]
    assert tools["keep"] == ["may change something, repeatable", "Keep e.g. a door."]
    many = tools["many  Many things"]
    assert many[1:8] == [
        "one_of_many: 0 or 1 or 2 or 3 or 4 or 5 or \u2026",
        "circle: anything",
        "anything: anything",
        "list: array of 1",
        "day: string, required. When. forged",
        "nothing: null",
        "odd_words: number",
    ]


def test_what_declares_a_next_tool_is_marked_and_described_in_a_sentence(cli: Cli) -> None:
    tools = {line.split()[0]: told for line, told in paragraphs(cli("tools").out).items()}
    marked = {name for name, told in tools.items() if "can name a next tool" in told[0]}
    prepares = {"prepare_money_transfer", "confirm_or_cancel_money_transfer"}
    assert marked == {*prepares, "request_manager_approval", "multiplex_tools"}
    assert tools["prepare_money_transfer"][1] == (
        "Prepare a transfer between the customer's accounts, or to one of their payees."
    )


@pytest.mark.parametrize(
    ("does", "code", "told"),
    [
        ("toolless", 0, "hostile 1: 0 tools (MCP 2025-11-25)"),
        ("no_list", 2, "The server's tools are not shown: the list has no array of tools."),
        ("pages", 2, "the server lists more than 10,000 tools"),
        ("listless", 2, "The server did not list its tools within 0.5 s."),
        ("mute", 2, "it did not answer within 1 s"),
    ],
)
def test_without_a_list(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, origin: str, does: str, code: int, told: str
) -> None:
    if does in ("listless", "mute"):
        monkeypatch.setattr(timeouts, "DEFAULT", timeouts.Timeouts(connect=1, call=0.5))
    ended = cli("tools", "--url", f"{origin}/{does}")
    assert (ended.code, told in ended.out + ended.err) == (code, True), ended
    assert ended.err.count("\n") == (1 if code else 0)
    assert not STEERS.search(ended.out + ended.err)
