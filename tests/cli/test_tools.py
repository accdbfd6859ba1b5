"""`banking-server tools`, and `call` without a tool: the tools of any server, odd ones included."""

from collections.abc import Iterator

import pytest

from banking_server.host import timeouts

from ..kit.command import Cli
from ..kit.hostile import STEERS, hostile_server


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with hostile_server() as found:
        yield found


def paragraphs(out: str) -> dict[str, list[str]]:
    """Return what is said of each tool, by the line with its names."""
    _, *tools = out.rstrip("\n").split("\n\n")
    return {tool.splitlines()[0]: [*map(str.strip, tool.splitlines()[1:])] for tool in tools}


def test_what_is_odd_hides_nothing_and_steers_nothing(cli: Cli, origin: str) -> None:
    listed = cli("tools", "--url", f"{origin}/odd_tools")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith("hostile 1: 7 tools (MCP 2025-11-25)\n")
    assert not STEERS.search(listed.out)
    assert "\nforged" not in listed.out
    assert max(map(len, listed.out.splitlines())) < 500
    tools = paragraphs(listed.out)
    unknown = ["may change or destroy something"]
    assert tools["bare"] == unknown
    assert tools["(a tool without a name)"] == unknown
    assert tools["\u65e5\u672c\u8a9e"] == ["only reads, reaches out to other systems"]
    assert tools["pay"] == ["may move money"]
    assert tools["keep"] == ["may change something, repeatable"]
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


@pytest.mark.parametrize(
    ("does", "code", "told"),
    [
        ("toolless", 0, "hostile 1: 0 tools (MCP 2025-11-25)"),
        ("no_list", 2, "The server's list of tools is not valid MCP: see tools in it."),
        ("pages", 2, "the server's tools have more than 4,000,000 characters."),
        ("long_pages", 2, "the server's tools have more than 4,000,000 characters."),
        ("listless", 2, "The server did not list its tools within 0.5 s."),
    ],
)
def test_without_a_list(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, origin: str, does: str, code: int, told: str
) -> None:
    if does == "listless":
        monkeypatch.setattr(timeouts, "DEFAULT", timeouts.Timeouts(call=0.5))
    ended = cli("tools", "--url", f"{origin}/{does}")
    assert (ended.code, told in ended.out + ended.err) == (code, True), ended
    assert ended.err.count("\n") == (1 if code else 0)
    assert not STEERS.search(ended.out + ended.err)


def test_what_stands_behind_the_dashes_is_the_server(cli: Cli) -> None:
    for command in ("call", "tools"):
        ended = cli(command, "--", "no-such-command", "--url")
        assert (ended.code, ended.out) == (2, "")
        assert "Cannot talk to no-such-command: there is no such command" in ended.err
    assert "needs the name of a tool" in cli("call", "--arguments", "{}").err
