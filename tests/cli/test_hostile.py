"""The commands as victims: no text of others steers, hangs or fills them."""

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from banking_server.client import connect

from ..kit.command import Cli, Ended
from ..kit.model import error, native, scripted_model
from ..proxy.scripted import Shop, said
from .support import at_the_bank, refusing_server, wait_for_a_manager, wait_for_an_agent

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u200b\U000e0041\u2028\x00\rforged\nforged"
"""Clears the screen, sets its title, turns text round, hides some, and begins lines of its own."""

STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What must not reach a terminal."""

SAID = "SAID"
"""Stands beside each `ESCAPES`, so that a test finds what was shown."""

MISCHIEF = f"{SAID}{ESCAPES}"


def steers_nothing(ended: Ended) -> str:
    """Check what is shown, and return it."""
    shown = ended.out + ended.err
    assert not STEERS.search(shown), ended
    # Nor does a line of the server's own begin where ours do.
    assert "\nforged" not in shown
    assert "Traceback" not in shown
    return shown


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


DIRECTIVE = {"tool": MISCHIEF, "arguments": {SAID: MISCHIEF}, "title": "SAID by the server"}
CONTENT = [
    {"type": "text", "text": MISCHIEF},
    {"type": "image", "data": "", "mimeType": MISCHIEF},
    {"type": "resource_link", "name": MISCHIEF, "uri": f"x:{SAID}", "title": MISCHIEF},
    {"type": "resource", "resource": {"uri": f"x:{SAID}", "text": MISCHIEF, "mimeType": MISCHIEF}},
]
HARMLESS = {"readOnlyHint": True, "title": MISCHIEF}

MISCHIEFS: dict[str, dict[str, Any]] = {
    "in a result": {
        "answers": {"first": [said("", content=CONTENT, _meta={"nextTool": DIRECTIVE})]},
    },
    "in a tool that is followed to": {
        "answers": {
            "first": [said("first", _meta={"nextTool": DIRECTIVE})],
            MISCHIEF: [said("", content=[], structuredContent={MISCHIEF: MISCHIEF}, isError=True)],
        },
        "tools": [
            [
                tool("first"),
                tool(MISCHIEF, title=MISCHIEF, description=MISCHIEF, annotations=HARMLESS),
            ]
        ],
    },
    "in an error": {"answers": {"first": [{"error": {"code": -32000, "message": MISCHIEF}}]}},
}


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("script", MISCHIEFS.values(), ids=MISCHIEFS)
def test_no_text_of_a_server_steers_the_terminal(
    cli: Cli, tmp_path: Path, script: dict[str, Any], more: tuple[str, ...]
) -> None:
    server = Shop(tmp_path, **script).command
    assert SAID in steers_nothing(cli("call", "first", "--trust-hints", *more, "--", *server))


def test_no_text_of_a_model_or_its_endpoint_steers_the_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, **MISCHIEFS["in a result"])
    script = [native("first", **{SAID: MISCHIEF}), MISCHIEF, error(400, MISCHIEF)]
    monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
    with scripted_model(script) as model:
        monkeypatch.setenv("BANKING_MODEL_URL", model.url)
        for number in range(2):
            asked = cli("chat", "--trust-hints", "--prompt", "Hi", "--", *shop.command)
            # The answer is the output, whose lines are the model's own.
            shown = steers_nothing(Ended(0, asked.out.replace("\nforged", ""), asked.err))
            assert SAID in (asked.err if number else asked.out), shown


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("command", ["handoffs", "approvals", "audit", "codes"])
def test_no_text_in_the_database_steers_the_terminal(
    cli: Cli, database: Path, command: str, more: tuple[str, ...]
) -> None:
    """The bank refuses such a text; it comes from whoever can write to the file."""
    at_the_bank(database, wait_for_an_agent)
    at_the_bank(database, wait_for_a_manager)
    with closing(sqlite3.connect(database)) as bank, bank:
        bank.execute("UPDATE handoff SET reason = ?", (MISCHIEF,))
        bank.execute("UPDATE approval SET reason = ?", (MISCHIEF,))
    shown = steers_nothing(cli(command, *more))
    assert (SAID in shown) is (command in ("handoffs", "approvals"))


def test_no_variable_steers_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"BANKING_{ESCAPES.replace(chr(0), '')}", "x")
    steers_nothing(cli("doctor"))
    for arguments in (
        ("--customer", ESCAPES),
        ("install", ESCAPES),
        ("call", "x", "--url", ESCAPES),
    ):
        steers_nothing(cli(*arguments))


def test_no_name_of_a_server_steers_the_terminal(cli: Cli, tmp_path: Path) -> None:
    named = {"name": MISCHIEF, "version": MISCHIEF, "title": MISCHIEF}
    shop = Shop(tmp_path, greeting={"serverInfo": named, "instructions": MISCHIEF})
    assert SAID in steers_nothing(cli("tools", "--", *shop.command))
    # A reason phrase and an OAuth description.
    words = MISCHIEF.encode("utf-8").decode("latin-1").replace("\r", "").replace("\n", " ")
    with refusing_server(words.replace("\x00", ""), words.replace("\x00", "")) as url:
        assert SAID in steers_nothing(cli("tools", "--url", url))


SHOUTS = f"""import os, sys
print({MISCHIEF!a}, "ValidationError: server/discover", file=sys.stderr, flush=True)
os.execv(sys.argv[1], sys.argv[1:])"""


def test_a_servers_standard_error_is_shown_and_steers_nothing(cli: Cli, tmp_path: Path) -> None:
    """A server of MCP 1 prints 97 lines of errors at `server/discover`, which it does not know."""
    shop = Shop(tmp_path, answers={"first": [said("done")]})
    ended = cli("call", "first", "--", sys.executable, "-c", SHOUTS, *shop.command)
    assert ended.code == 0
    assert SAID in steers_nothing(ended)
    # Each line is marked, so that none looks like ours.
    *theirs, ours = ended.err.splitlines()
    assert {line[:9] for line in theirs} == {"[server] "}
    assert ours == (
        "The server's errors about server/discover are harmless: it does not know MCP 2026-07-28, "
        "and is called by 2025-11-25."
    )


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
    monkeypatch.setattr(connect, "SECONDS", 0.1)
    allowed = cli(*command, "--url", url, "--insecure")
    assert "Cannot talk to http://192.0.2.1/mcp" in allowed.err


# --- `tools` -------------------------------------------------------------------------------------


def paragraphs(out: str) -> dict[str, list[str]]:
    """Return what is said of each tool, by the line with its names."""
    _, *tools = out.rstrip("\n").split("\n\n")
    return {tool.splitlines()[0]: [*map(str.strip, tool.splitlines()[1:])] for tool in tools}


ODD = [
    tool("bare"),
    tool(f"stirring{ESCAPES}", title=MISCHIEF, description=f"{MISCHIEF} {'x' * 50_000}"),
    tool(""),
    tool("php", annotations="none", inputSchema=[]),
    tool("twice", title="One"),
    tool("twice", title="Two"),
    tool("\u65e5\u672c\u8a9e", annotations={"readOnlyHint": True, "openWorldHint": True}),
    tool("pay", title="pay", _meta={"com.example/moves-money": True}),
    tool(
        "keep",
        description="Keep e.g. a door. Never. Not",
        annotations={"destructiveHint": False, "idempotentHint": True},
    ),
]


def test_a_malformed_tool_list_is_shown_as_far_as_it_can_be_read(cli: Cli, tmp_path: Path) -> None:
    answers = {"first": [said("done")]}
    shop = Shop(tmp_path, tools=[ODD], answers=answers, advertises=False)
    listed = cli("tools", "--", *shop.command)
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith("scripted 1: 6 tools (MCP 2025-11-25)\n")
    assert listed.out.splitlines()[-5:] == [
        "An entry of the tool list has no name, and is left out.",
        "",
        'The annotations of the tool "php" cannot be read, so they are ignored.',
        "",
        'The tool "twice" is listed twice, and is left out.',
    ]
    steers_nothing(listed)
    assert max(map(len, listed.out.splitlines())) < 500
    called = cli("call", "first", "--", *shop.command)
    assert (called.code, "   done\n" in called.out) == (0, True), "no list takes a result away"
    tools = paragraphs(listed.out)
    unknown = ["may change or destroy something"]
    assert tools["bare"] == unknown
    assert tools["php"] == unknown
    assert tools["\u65e5\u672c\u8a9e"] == ["only reads, reaches out to other systems"]
    assert tools["pay"] == ["may move money"]
    assert tools["keep"] == ["may change something, repeatable", "Keep e.g. a door."]


NO_SUCH = {"error": {"code": -32601, "message": "no"}}
MUTE = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.mark.parametrize(
    ("lists", "code", "told"),
    [
        (NO_SUCH, 0, "scripted 1: 0 tools (MCP 2025-11-25)"),
        ({"result": {"tools": "none"}}, 2, "are not shown: the list has no array of tools."),
        ("waits", 2, "The server did not list its tools within 1 s."),
        (None, 2, "it did not answer within 1 s"),
    ],
)
def test_a_server_without_a_tool_list(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lists: Any, code: int, told: str
) -> None:
    server = MUTE if lists is None else Shop(tmp_path, tools=[lists]).command
    if lists in ("waits", None):
        monkeypatch.setattr(connect, "SECONDS", 1)
    ended = cli("tools", "--", *server)
    assert (ended.code, told in ended.out + ended.err) == (code, True), ended
    assert ended.err.count("\n") == (1 if code else 0)
