"""The room's page: its example is run, and its figures are the code's."""

import importlib
import os
import re
import sys
from pathlib import Path

import pytest

from banking_server import agent
from banking_server.cli.servers import from_configuration

from ..kit.model import call, scripted_model
from .test_several_servers import chat

PAGE = Path(str(agent.__file__)).with_name("README.md").read_text(encoding="utf-8")


def test_the_agents_of_the_page_are_read_and_one_is_talked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agents.yaml"
    found = re.search(r"<!-- agents.yaml -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file.write_text(found[1])
    monkeypatch.setenv("SHOP_TOKEN", "t")
    (bank, _, _), shop = from_configuration(agent.load_agent(file, "buyer"))
    assert (bank, shop) == ("bank", ("shop", "https://shop.example/mcp", "SHOP_TOKEN"))

    # The command of this environment, whether it is the shell's or not.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("BANKING_DATABASE", str(tmp_path / "bank.db"))
    with scripted_model([call("list_accounts"), "Four."]) as model:
        options = ("--config", str(file), "--agent", "teller")
        assert chat(monkeypatch, model.url, *options, lines="What do I have?\n") == 0
    assert capsys.readouterr().out == "Four.\n"
    told = model.requests[0]["messages"][0]["content"]
    assert re.findall("^Tool: (.*)", told, re.MULTILINE) == [
        *("list_accounts", "get_account_balance", "reply_to_user")
    ]
    assert told.startswith("You work at the counter. Be brief.\n\n")
    assert "The server 'bank' lets you know: " in told


def test_the_bounds_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 9
    for module, name, figure in rows:
        code = importlib.import_module(f"banking_server.agent.{module}")
        assert getattr(code, name) == int(figure.replace(",", ""))
