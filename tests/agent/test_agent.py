"""The agent in both forms: what its model is told, its limits, and how a request can end."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic_ai.models.test import TestModel

from banking_server.client.agent import conversation
from banking_server.client.agent.conversation import Conversation, begin
from banking_server.client.agent.prompt_form import MAX_PROMPT, describe, read
from banking_server.client.agent.settings import (
    AgentConfiguration,
    ConfigurationMistake,
    ModelSettings,
    connected_model,
    load_agent,
)
from tool_chaining import CLIENT_EXTENSION, Tool
from tool_chaining.errors import ForPeople

from ..kit.model import Raw, ScriptedModel, Silence, call, error, native, scripted_model
from ..kit.shop import Person, Shop

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

KEY = "sk-do-not-tell"
BOTH = pytest.mark.parametrize("form", ["native", "prompt"])


@dataclass
class Scene:
    """One conversation, with a shop and a scripted model."""

    model: ScriptedModel
    talk: Conversation
    person: Person
    shop: Shop

    def told(self) -> str:
        return self.model.last_message()


@asynccontextmanager
async def scene(
    script: Any,
    form: Any = "native",
    *,
    server: MCPServer[Any] | None = None,
    agent: AgentConfiguration | None = None,
    **more: Any,
) -> AsyncIterator[Scene]:
    shop, person = Shop(), Person()
    with scripted_model(script) as model:
        chosen = ModelSettings(url=model.url, name="scripted", tools=form, **more)
        async with (
            Client(server or shop.mcp, extensions=[CLIENT_EXTENSION]) as client,
            connected_model(chosen) as connected,
        ):
            narrate: Any = lambda: person  # noqa: E731
            clients = {server.name if server else "shop": client}
            talk = await begin(chosen, connected, clients, agent or AgentConfiguration(), narrate)
            yield Scene(model, talk, person, shop)


def make(form: str, tool: str, **arguments: Any) -> Any:
    return (native if form == "native" else call)(tool, **arguments)


# --- both forms -----------------------------------------------------------------------------------


@BOTH
async def test_the_number_of_replies_is_limited(form: str) -> None:
    async with scene([make(form, "greet")] * 20 + ["Never."], form) as s:
        answered, report = await s.talk.ask("Go on.")
        assert not answered
        assert report.startswith("The model gave no answer in 12 replies. ")
        assert f"Done so far: {'; '.join(['greet'] * 12)}." in report
        assert len(s.model.requests) == 12


@BOTH
async def test_after_a_stop_the_model_knows_which_calls_were_made(form: str) -> None:
    script = [make(form, "prepare"), "I am back."]
    async with scene(script, form) as s:
        s.shop.stalls = {"audit"}

        async def stop() -> None:
            await s.shop.stalled.wait()
            s.talk.scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            answered, report = await s.talk.ask("Pay.")
        assert not answered
        assert report.startswith("This was stopped. Done so far: prepare; pay. It is not known")
        assert await s.talk.ask("Are you there?") == (True, "I am back.")
    roles = [message["role"] for message in s.model.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert report in s.model.told.replace('\\"', '"').replace('\\\\"', '"').replace("\\", "")


async def test_the_time_for_a_request_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "SECONDS", 0.5)
    async with scene([Silence()]) as s:
        answered, report = await s.talk.ask("Wait.")
    assert (answered, report[:46]) == (False, "The 0.5 seconds for this request are over. No ")


@BOTH
async def test_directives_may_use_only_the_tools_that_the_model_may(form: str) -> None:
    agent = AgentConfiguration(system_prompt="Be brief.", tools=("prepare", "greet"))
    async with scene([make(form, "prepare"), "Prepared."], form, agent=agent) as s:
        await s.talk.ask("Pay.")
    assert s.person.allowed == {"prepare", "greet"}
    assert {*s.talk.tools} == {"prepare", "greet"}
    offered = s.model.requests[0]
    assert "Be brief." in offered["messages"][0]["content"]
    assert "audit" not in json.dumps(offered)


async def test_a_tool_that_no_server_has_cannot_be_allowed() -> None:
    async with Client(Shop().mcp) as client:
        chosen = ModelSettings(url="http://localhost", name="m")
        agent = AgentConfiguration(tools=("sell",))
        narrate: Any = Person
        with pytest.raises(ConfigurationMistake, match=r"allowed: sell\. The servers are: shop$"):
            await begin(chosen, TestModel(), {"shop": client}, agent, narrate)


FAULTS = [
    (error(404, f"no model {KEY}"), "no model"),
    (Raw("x" * 20_000_000), ""),
    (Raw("[" * 100_000), ""),
    (Raw('{"choices": [{"message": {"content": "half'), ""),
    (Raw(json.dumps({"error": {"message": f"{KEY}\x1b[31m\ncredits"}}), 402), "credits"),
    (Raw("<h1>Sign in</h1>"), ""),
]


async def test_a_fault_of_the_endpoint_is_one_line_and_the_key_goes_nowhere_else() -> None:
    with scripted_model(["never"]) as other:
        away = Raw("", status=307, headers={"location": f"{other.url}/chat/completions"})
        async with scene([away, *(fault for fault, _ in FAULTS), "Here."], key=KEY) as s:
            where = urlsplit(s.model.url).netloc
            for words in ("", *(words for _, words in FAULTS)):
                answered, report = await s.talk.ask("Hello")
                assert not answered
                assert report.startswith(f"The model at {where} gave no usable reply: ")
                assert words in report
                assert report.isprintable()
                assert KEY not in report
            assert await s.talk.ask("Hello?") == (True, "Here.")
        assert other.requests == []
    assert KEY not in s.model.told
    assert s.model.headers[0]["authorization"] == f"Bearer {KEY}"


SELF = {"$ref": "#"}


@BOTH
async def test_a_schema_that_refers_to_itself_makes_no_long_prompt(form: str) -> None:
    """Twenty references, each of which has twenty in turn."""
    mcp: MCPServer[Any] = MCPServer("hostile")
    mcp.add_tool(lambda: "", name="grow", description="Grow.")
    schema = {"type": "object", "properties": {f"a{n}": SELF for n in range(20)}}
    mcp._tool_manager._tools["grow"].parameters = schema
    async with scene(["Small."], form, server=mcp) as s:
        assert await s.talk.ask("Grow.") == (True, "Small.")
    assert len(s.model.told) < 5_000


# --- the prompt form ------------------------------------------------------------------------------

CALL = ("list", {"a": {"b": 1}})


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        ("Your balance is 5.00.\n", "Your balance is 5.00.\n"),
        ('{"name": "Alice"}', '{"name": "Alice"}'),
        ('{"tool": "list", "arguments": {"a": {"b": 1}}}', CALL),
        ('```json\n{"tool": "list", "arguments": {"a": {"b": 1}}}\n```', CALL),
        (
            '{"response": "I look.", "mcp": {"tool": "s", "method": "list", "params": {}}}',
            ("list", {}),
        ),
        ('{"tool": "list"}', ("list", {})),
        ('{"response": "Done."}', "Done."),
        ('{"tool": "list", "arguments": []}', '{"tool": "list", "arguments": []}'),
        ('{"tool": ' * 5_000, '{"tool": ' * 5_000),
    ],
)
def test_a_reply_is_a_call_or_the_answer(reply: str, meaning: object) -> None:
    assert read(reply) == meaning


@settings(deadline=None)
@given(st.text() | st.recursive(st.none() | st.text(), lambda v: st.lists(v)).map(json.dumps))
def test_any_reply_can_be_read(text: str) -> None:
    assert read(text) is not None


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ('I call {"tool": "greet", "arguments": {}} now.', "a call is ONE JSON object, alone"),
        ('{"steps": [{"tool": "greet", "arguments": {}}]}', "a call is ONE JSON object, alone"),
        (call("sell"), "there is no such tool"),
    ],
)
async def test_a_mistake_goes_back_to_the_model_once(wrong: str, problem: str) -> None:
    async with scene([wrong, call("greet"), "Hello."], "prompt") as s:
        assert await s.talk.ask("Greet.") == (True, "Hello.")
        back = s.model.requests[1]["messages"][-1]["content"]
        assert back.startswith(f"No call was made: {problem}. Tools: ")
    async with scene([wrong, wrong, "Never."], "prompt") as s:
        is_answer, text = await s.talk.ask("Greet.")
    assert s.person.asked == []
    if wrong == call("sell"):
        unknown = "The model asked again for sell, which no server lists. "
        assert (is_answer, text.startswith(unknown)) == (False, True)
    else:
        assert (is_answer, text) == (True, wrong)


def test_the_prompt_is_short() -> None:
    long = Tool("long", {"description": "x" * 10_000, "inputSchema": {"properties": {"a": True}}})
    assert len(describe({"long": long})) < 3_000
    assert "- a (anything): no description" in describe({"long": long})
    with pytest.raises(ForPeople, match="choose fewer tools with --config"):
        describe({f"long{n}": long for n in range(MAX_PROMPT // 1_000 + 1)})


# --- where it comes from, word for word -----------------------------------------------------------

REPLIES = [
    """{
  "response": "I'll discover my permissions first",
  "mcp": {"tool": "smart_filesystem", "method": "get_allowed_paths", "params": {}}
}""",
    """{
  "response": "Based on my permissions, I'll save to ~/workspace/",
  "mcp": {
    "tool": "smart_filesystem",
    "method": "write_file",
    "params": {"path": "~/workspace/report.json", "content": "..."}
  }
}""",
    '{"response": "Report created successfully at ~/workspace/report.json!"}',
]

AGENTS = """
agents:
  - id: chaining_agent
    system_prompt: |
      You can make multiple tool calls by returning JSON with 'mcp' field.
      After each tool result, you can make another tool call or provide final response.

      Example:
      1. First call: get_allowed_paths()
      2. Use result to inform: write_file()
      3. Final response to user
    tools:
      - smart_filesystem
"""


async def test_the_seeds_agent_makes_its_calls_until_a_reply_has_none(tmp_path: Path) -> None:
    mcp: MCPServer[Any] = MCPServer("smart_filesystem")
    written: dict[str, str] = {}

    @mcp.tool()
    def get_allowed_paths() -> dict[str, Any]:
        """Say where files may be written."""
        return {"local_filesystem": {"read_write_paths": ["~/workspace/"]}}

    @mcp.tool()
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        written[path] = content
        return "Written."

    file = tmp_path / "agents.yaml"
    file.write_text(AGENTS)
    agent = load_agent(file)
    async with scene(REPLIES, "prompt", server=mcp, agent=agent) as s:
        answer = json.loads(REPLIES[-1])["response"]
        assert await s.talk.ask("Create a report with my tasks") == (True, answer)
    assert written == {"~/workspace/report.json": "..."}
    first, second, third = (request["messages"] for request in s.model.requests)
    assert first[0]["content"].startswith(agent.system_prompt.strip())
    described = (
        "Tool: write_file\nDescription: Write a file.\nArguments:\n- path (string, required): "
    )
    assert described in first[0]["content"]
    # Each result is in the context of the next reply.
    assert "~/workspace/" in second[-1]["content"]
    assert "Written." in third[-1]["content"]
