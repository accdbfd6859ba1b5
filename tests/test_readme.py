"""What the README shows is what happens."""

import ast
import json
import re
import runpy
import tempfile
from datetime import time
from decimal import Decimal
from pathlib import Path

import pytest

from banking_server.client.agent.settings import PREFIX, ModelSettings
from banking_server.server.settings import Settings

from .kit.command import Cli
from .kit.pages import PAGES, ROOT, block

README = "README.md"
LIBRARY = "specs/python/README.md"
PROXY = "specs/proxy/README.md"
COMMANDS = "banking_server/cli/README.md"
CODE = "banking_server/README.md"
EXAMPLES = ROOT / "specs" / "examples"


def test_the_front_page_has_at_most_850_words() -> None:
    assert len(PAGES[README].text.split()) <= 850


@pytest.mark.anyio
async def test_the_clients_lines_on_the_front_page_follow_the_chain() -> None:
    lines = compile(
        block(README, "in a client", "python"), README, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    names = {"server": runpy.run_path(str(EXAMPLES / "orders.py"))["mcp"]}
    await eval(lines, names)
    assert [step.tool for step in names["chain"].steps] == ["cancel_order", "open_return"]


@pytest.mark.parametrize(
    ("page", "marker", "file"),
    [
        (README, "in orders.py", EXAMPLES / "orders.py"),
        (LIBRARY, "orders.py", EXAMPLES / "orders.py"),
        (LIBRARY, "client.py", EXAMPLES / "client.py"),
        (CODE, "in next_steps.py", ROOT / "banking_server" / "tools" / "next_steps.py"),
        (README, "taskmanager.toml", EXAMPLES / "rules" / "taskmanager.toml"),
        ("specs/proxy/rules.md", "memory.toml", EXAMPLES / "rules" / "memory.toml"),
        ("specs/proxy/rules.md", "commits.toml", EXAMPLES / "recorded" / "commits.toml"),
    ],
)
def test_code_on_a_page_is_the_code_in_the_file(page: str, marker: str, file: Path) -> None:
    language = {".toml": "toml"}.get(file.suffix, "python")
    assert block(page, marker, language) in file.read_text(encoding="utf-8")


def test_the_demo_prints_the_page_s_output_and_leaves_no_files(
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
    assert lasting(block(COMMANDS, "demo", "text")) in lasting(ran.out)
    trail = lasting(ran.out).split("== The audit trail")[1].splitlines()
    assert trail[-2:] == [
        "TIME UTC  CUST001  request_agent_handoff  handoff_opened ho_ID0",
        "  chain ID1, call 2, after prepare_money_transfer",
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_first_screen_shows_the_result_of_the_demo() -> None:
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


def test_the_table_lists_every_setting_with_its_description() -> None:
    rows = ["| variable | default | |", "| --- | --- | --- |"]
    for prefix, settings in (("BANKING_", Settings), (PREFIX, ModelSettings)):
        for name, field in settings.model_fields.items():
            plain = isinstance(field.default, str | int | float | Decimal | time)
            default = f"`{field.default}`" if plain else ""
            rows.append(f"| `{prefix}{name.upper()}` | {default} | {field.description} |")
    text = PAGES["banking_server/server/README.md"].text
    assert text.split("<!-- settings -->\n", 1)[1].split("<!-- /settings -->")[0].strip() == (
        "\n".join(rows)
    )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "banking_server/README.md"])
def test_named_files_exist(page: str) -> None:
    """A path in backticks is one of the repository, of the package, or of its tests."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|yaml|json))`", PAGES[page].text))
    bank, specs = ROOT / "banking_server", ROOT / "specs"
    roots = (ROOT, bank, bank / "bank", specs / "python", specs / "proxy", specs / "conformance")
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert missing == []
