"""Agents in a file: what is read, and what each mistake is told in one line."""

from pathlib import Path

import pytest
from mcp import Client

from banking_server.agent import Agent, Endpoint, Toolbox, ToolsUnavailable
from banking_server.agent.configuration import ConfigurationMistake, load_agent

from ..kit.model import call, scripted_model
from .shop_server import fresh_shop
from .support import Consent, settings

pytestmark = pytest.mark.anyio

GOOD = """
agents:
  - id: teller
    system_prompt: Be brief.
    tools: [price, buy]
  - id: plain
"""


MISTAKES = {
    "agents: [": ":1: cannot be used: ",
    f"agents: {'[' * 400}": "cannot be used",
    "agents: [{id: a, tools: }]": "must be a list; leave it out to allow all tools",
    "agents: [{id: a b}]": "agents[0].id: must be made of letters, digits, and . _ -, not 'a b'",
    "workflows: {}\nagents: [{id: a}]": "workflows: is not known here",
    "agents: [{id: a}, {id: a}]": "agents must have different names, and 'a' is there twice",
    "agents: [{id: a}, {id: b}]": "choose an agent: a, b",
}


@pytest.mark.parametrize(("text", "told"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_one_line_with_file_and_place(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationMistake) as mistake:
        load_agent(file)
    line = str(mistake.value)
    assert line.startswith(str(file))
    assert told in line
    assert "\n" not in line


async def test_an_agent_has_the_tools_that_are_allowed_and_its_prompt() -> None:
    shop, log = fresh_shop()
    script = [call("buy", door="oak"), call("price", door="oak"), "80."]
    with scripted_model(script) as model:
        async with Endpoint(settings(model.url)) as endpoint, Client(shop) as client:
            toolbox = await Toolbox.gather({"shop": client}, allowed=["price"])
            agent = Agent(endpoint, toolbox, consent=Consent(True), system_prompt="Be brief.")
            assert (await agent.ask("Buy oak.")).answer == "80."
            with pytest.raises(ToolsUnavailable, match="The servers have no tool of these names"):
                await Toolbox.gather({"shop": client}, allowed=["none"])
    assert [tool for tool, _ in log.calls] == ["price"]
    system = model.requests[0]["messages"][0]["content"]
    assert system.startswith("Be brief.\n\n")
    assert "Tool: buy" not in system
