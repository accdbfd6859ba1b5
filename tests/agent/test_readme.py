"""The room's page: its agents can be loaded, and its figures are the code's."""

import importlib
import re
from pathlib import Path

import pytest

from banking_server import agent

PAGE = Path(str(agent.__file__)).with_name("README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.quick


def test_the_agents_of_the_page_are_read(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    found = re.search(r"<!-- agents.yaml -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file.write_text(found[1])
    teller = agent.load_agent(file, "teller")
    assert teller.system_prompt == "You work at the counter. Be brief."
    assert teller.tools == ("list_accounts", "get_account_balance")


def test_the_bounds_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for module, name, figure in rows:
        code = importlib.import_module(f"banking_server.agent.{module}")
        assert getattr(code, name) == int(figure.replace(",", ""))
