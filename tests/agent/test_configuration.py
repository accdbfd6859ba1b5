"""Agents in a file: what is read, and what each mistake is told in one line."""

from pathlib import Path

import pytest
from mcp import Client

from banking_server.agent import Agent, Endpoint, Toolbox, ToolsUnavailable
from banking_server.agent.configuration import MAX_FILE, ConfigurationMistake, load_agent

from ..kit.model import call, scripted_model
from .shop_server import fresh_shop
from .support import Consent, settings

pytestmark = pytest.mark.anyio

GOOD = """
agents:
  - id: teller
    system_prompt: Be brief.
    tools: [price, buy]
    servers:
      - name: shop
        command: [shop]
        url:
        tools: [price]
      - name: other
        url: https://other.example/mcp
        token_variable: OTHER_TOKEN
        trust_hints: false
  - id: plain
"""


def test_agents_are_read_by_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(GOOD)
    teller = load_agent(file, "teller")
    assert (teller.system_prompt, teller.tools) == ("Be brief.", ["price", "buy"])
    shop, other = teller.servers
    assert (shop.command, shop.tools, shop.trust_hints) == (["shop"], ["price"], True)
    assert (other.url, other.token_variable) == ("https://other.example/mcp", "OTHER_TOKEN")
    plain = load_agent(file, "plain")
    assert (plain.tools, plain.servers) == (None, [])
    file.write_text("agents: [{id: only}]")
    assert load_agent(file).id == "only"


def one(server: str) -> str:
    return f"agents: [{{id: a, servers: [{{name: s, {server}}}]}}]"


MISTAKES = {
    "agents: [": ":1: cannot be used: ",
    "\x00": "cannot be used",
    "agents:\n- id: a\n  tools: [x]\n  tools: [y]": ":4: cannot be used: 'tools' stands twice",
    'agents: [{id: a, system_prompt: "\\ud800"}]': "holds half a character",
    "agents: [&a {id: a}]": ":1: cannot be used: & and * are not for this file",
    "agents: [{id: a, <<: [*b]}]": "& and * are not for this file",
    f"agents: {'[' * 5_000}": "it is nested too deeply",
    f"agents: [{{id: 0x{'f' * 6_000}}}]": "a number is too long",
    "agents: [{id: a, tools: }]": "must be a list; leave it out to allow all tools",
    'agents: [{id: a, "\\e[31m\\u202e": x}]': "agents[0].",
    "agents: [{id: a, system_prompt: [secret]}]": "system_prompt: must be text",
    one("command: shop --token secret"): "command: must be a list",
    one("url: 'http://x', token_variable: sk-secret-1"): "must be the name of an environment",
    "[]": "must be a mapping of names to values",
    "agents: []": "agents: must not be empty",
    "agents: [{}]": "agents[0].id: is missing",
    "agents: [{id: 5}]": "agents[0].id: must be text, not '5'",
    "agents: [{id: a b}]": "agents[0].id: must be made of letters, digits, and . _ -, not 'a b'",
    "agents: [{id: a, tools: price}]": "agents[0].tools: must be a list, not 'price'",
    "agents: [{id: a}, {id: a}]": "agents must have different names, and 'a' is there twice",
    "agents: [{id: a}, {id: b}]": "choose an agent: a, b",
    one("command: []"): "agents[0].servers[0].command: must not be empty",
    one("command: [x], token: secret"): "agents[0].servers[0].token: is not known here",
    one("url: 'ftp://x'"): "agents[0].servers[0].url: must be an http or https URL",
    one("url: 'http://[x'"): "agents[0].servers[0].url: must be an http or https URL",
    one("url: 'http://u:secret@x'"): "must hold no user, password or key; use token_variable",
    one("url: 'http://x/mcp?v=1&API_KEY=secret'"): "must hold no user, password or key; use",
    one("url: 'http://x', command: [x]"): "must have either a command or a url",
    one("command: [x], token_variable: T"): "token_variable is for a url",
    one("url: 'http://x', token_variable: secret t"): "must be the name of an environment variable",
    "#" * (MAX_FILE + 1): "is too long: more than 1,000,000 bytes",
    one("url: 'http://x', trust_hints: 'no'"): "trust_hints: must be true or false, not 'no'",
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
    assert line.isprintable()
    assert "secret" not in line


def test_an_agent_or_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationMistake, match="cannot be read: No such file"):
        load_agent(tmp_path / "none.yaml")
    file = tmp_path / "agents.yaml"
    file.write_text(GOOD)
    with pytest.raises(ConfigurationMistake, match=r"no agent 'x'; the agents are: teller, plain"):
        load_agent(file, "x")


async def test_an_agent_has_the_tools_that_are_allowed_and_its_prompt() -> None:
    shop, log = fresh_shop()
    script = [call("buy", door="oak"), call("price", door="oak"), "80."]
    with scripted_model(script) as model:
        async with Endpoint(settings(model.url)) as endpoint, Client(shop) as client:
            toolbox = await Toolbox.gather(
                {"shop": client}, allowed=["price", "buy"], allowed_of={"shop": ["price", "order"]}
            )
            agent = Agent(endpoint, toolbox, consent=Consent(True), system_prompt="Be brief.")
            assert (await agent.ask("Buy oak.")).answer == "80."
            with pytest.raises(
                ToolsUnavailable, match=r"'shop' has no tool of these names.*: none"
            ):
                await Toolbox.gather({"shop": client}, allowed_of={"shop": ["price", "none"]})
            with pytest.raises(ToolsUnavailable, match="There is no server 'zz'"):
                await Toolbox.gather({"shop": client}, allowed_of={"zz": ["price"]})
            with pytest.raises(ToolsUnavailable, match="The servers have no tool of these names"):
                await Toolbox.gather({"shop": client}, allowed=["none"])
    assert [tool for tool, _ in log.calls] == ["price"]
    system = model.requests[0]["messages"][0]["content"]
    assert system.startswith("Be brief.\n\n")
    assert "Tool: buy" not in system
