"""What the README shows is what happens."""

import json
import re
import shlex
import sys
import tempfile
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from banking_server.agent.settings import FROM_ENVIRONMENT, PREFIX, ModelSettings
from banking_server.chaining import IDENTIFIER
from banking_server.server.settings import Settings

from .kit.command import Cli, environment
from .kit.pages import PAGES, ROOT, block
from .kit.servers import http_server
from .proxy.wire import proxy_over_http
from .server.conftest import _nobodys_settings, cli, database

__all__ = ["_nobodys_settings", "cli", "database"]

README = "README.md"
LIBRARY = "banking_server/chaining/README.md"
COMMANDS = "banking_server/cli/README.md"
CODE = "banking_server/README.md"
PROXY = "banking_server/proxy/README.md"
EXAMPLES = ROOT / "specs" / "examples"


def test_the_front_page_has_no_more_than_150_lines() -> None:
    assert len(PAGES[README].text.splitlines()) <= 150


@pytest.mark.parametrize(
    ("page", "marker", "file"),
    [
        (README, "in orders.py", EXAMPLES / "orders.py"),
        (LIBRARY, "client.py", EXAMPLES / "client.py"),
        (CODE, "in next_steps.py", ROOT / "banking_server" / "tools" / "next_steps.py"),
    ],
)
def test_code_on_a_page_is_the_code_in_the_file(page: str, marker: str, file: Path) -> None:
    assert block(page, marker, "python") in file.read_text(encoding="utf-8")


def test_the_demo_prints_what_is_shown_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    def lasting(text: str) -> str:
        """Without what differs from run to run: each id becomes its number, a time a word."""
        ids = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=ho_)[0-9a-f]{16}")
        number = {found: f"ID{n}" for n, found in enumerate(dict.fromkeys(ids.findall(text)))}
        text = ids.sub(lambda found: number[found[0]], text)
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)

    # Settings of the person who runs it stay out of it, even bad ones.
    monkeypatch.setenv("BANKING_DATABASE", "/nowhere/bank.db")
    monkeypatch.setenv("BANKING_PORT", "none")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran = cli("demo")
    assert (ran.code, ran.err) == (0, "")
    assert lasting(ran.out).strip() == lasting(block(COMMANDS, "demo", "text")).strip()
    assert list(tmp_path.iterdir()) == []


def test_the_result_on_the_first_screen_is_the_one_of_the_demo() -> None:
    """What is left out is an ellipsis."""
    shown = block(README, "result", "json")
    named = json.loads(shown)["_meta"]["nextTool"]
    [text] = json.loads(shown)["content"]
    said = block(COMMANDS, "demo", "text")
    for part in (json.dumps(named, ensure_ascii=False), text["text"]):
        assert re.search(".+".join(map(re.escape, part.split("…"))), said), part
    lines = said.splitlines()
    for line in block(README, "demo, in short", "text").splitlines():
        assert line in lines


def test_every_setting_stands_in_the_table_in_its_own_words() -> None:
    rows = ["| variable | default | |", "| --- | --- | --- |"]
    of_the_model = {name: ModelSettings.model_fields[name] for name in FROM_ENVIRONMENT}
    for prefix, fields in (("BANKING_", Settings.model_fields), (PREFIX, of_the_model)):
        for name, field in fields.items():
            plain = isinstance(field.default, str | int | float | Decimal | time)
            default = f"`{field.default}`" if plain else ""
            rows.append(f"| `{prefix}{name.upper()}` | {default} | {field.description} |")
    text = PAGES["banking_server/server/README.md"].text
    assert text.split("<!-- settings -->\n", 1)[1].split("<!-- /settings -->")[0].strip() == (
        "\n".join(rows)
    )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "banking_server/README.md"])
def test_files_that_are_named_are_there(page: str) -> None:
    """A path in backticks is one of the repository, of the package, or of its tests."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|yaml|json))`", PAGES[page].text))
    roots = (ROOT, ROOT / "banking_server", ROOT / "banking_server" / "bank")
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert missing == []


def test_the_number_of_sentences_is_the_specifications() -> None:
    counted = re.search(r"(\d+) numbered sentences", PAGES[README].text)
    assert counted is not None
    text = (ROOT / "specs" / "requirements.yaml").read_text(encoding="utf-8")
    assert int(counted[1]) == len(set(re.findall(r"\bTC-[DSC]-\d\d\b", text)))


LOCKED = {"fromAccountId": "acc_checking_001", "toAccountId": "acc_savings_001", "amount": 250}


def rows_of_clients() -> list[str]:
    """Return the rows of the table of clients, without its head."""
    after = PAGES[PROXY].text.split("<!-- clients -->\n", 1)[1]
    return after.split("\n\n", 1)[0].splitlines()[2:]


def commands_of_clients() -> list[str]:
    """Return each command that the section on clients has a host start, once; the entry's first."""
    rows = "\n".join(rows_of_clients())
    commands = re.findall(r"`[^`]*?((?:tool-chaining-proxy|banking-server)[^`]* CUST001)`", rows)
    bank = json.loads(block(PROXY, "hosts", "json"))["mcpServers"]["bank"]
    return list(dict.fromkeys([shlex.join([bank["command"], *bank["args"]]), *commands]))


def here(line: str, **others: str) -> list[str]:
    """Return a command of the README as this environment starts it."""
    modules = {"tool-chaining-proxy": "banking_server.proxy", "banking-server": "banking_server"}
    return [
        word
        for part in shlex.split(line, comments=True)
        for word in (
            [sys.executable, "-m", modules[part]] if part in modules else [others.get(part, part)]
        )
    ]


THROUGH_THE_PROXY = "tool-chaining-proxy --trust-hints -- banking-server --customer CUST001"


async def of_a_plain_host(command: list[str], **variables: str) -> dict[str, Any]:
    """Return what a host gets that starts this command and knows nothing of chains."""
    server = StdioServerParameters(
        command=command[0], args=command[1:], env=environment(**variables)
    )
    async with Client(server, mode="legacy") as client:
        result = await client.call_tool("prepare_money_transfer", LOCKED)
    printed: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return printed


@pytest.mark.parametrize(
    "line",
    [
        # The first row is the bank itself; what it says through the proxy is said by both.
        pytest.param(line, marks=() if line == THROUGH_THE_PROXY else pytest.mark.ci)
        for line in commands_of_clients()
    ],
)
@pytest.mark.anyio
async def test_a_host_sees_what_the_table_says(line: str, tmp_path: Path) -> None:
    result = await of_a_plain_host(here(line), BANKING_DATABASE=str(tmp_path / "bank.db"))
    said = " ".join(item["text"] for item in result["content"])
    assert "is currently locked" in said
    followed = line == THROUGH_THE_PROXY
    assert ("Your reference is ho_" in said) is followed
    # A host that shows its model structured content alone tells it too.
    assert ("Your reference is ho_" in json.dumps(result["structuredContent"])) is followed


def test_every_row_of_the_table_says_what_to_do() -> None:
    assert commands_of_clients() == [THROUGH_THE_PROXY, "banking-server --customer CUST001"]
    for row in rows_of_clients():
        assert re.search(r"`.*(tool-chaining-proxy|banking-server).*`|above|`bank`|adapter", row)


@pytest.mark.anyio
@pytest.mark.nightly
async def test_the_proxy_in_three_lines(tmp_path: Path) -> None:
    stdio, to_http, over_http = block(PROXY, "proxy", "sh").splitlines()
    assert here(stdio) == here(commands_of_clients()[0])
    with http_server(tmp_path) as bank:
        line = here(to_http, **{"http://127.0.0.1:8000/mcp": bank.url})
        result = await of_a_plain_host(line, TOOL_CHAINING_PROXY_TOKEN=bank.token())
    assert "nextTool" not in result["_meta"]
    assert result["_meta"][IDENTIFIER]["outcome"] == "declined"
    arguments = here(over_http)[3:]
    arguments = arguments[arguments.index("--port") + 2 :]
    database = str(tmp_path / "bank.db")
    with proxy_over_http(tmp_path, *arguments, BANKING_DATABASE=database) as proxy:
        async with Client(proxy.url) as plain:
            called = await plain.call_tool("prepare_money_transfer", LOCKED)
    assert called.meta is not None
    # Nobody can be asked, and nobody said that the hints are trusted.
    assert called.meta[IDENTIFIER]["outcome"] == "declined"
