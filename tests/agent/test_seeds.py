"""The agent's two origins, word for word: tools in a prompt, and an agent that calls itself."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from banking_server.client.agent.endpoint import Endpoint
from banking_server.client.agent.loop import Agent
from banking_server.client.agent.settings import ModelSettings, load_agent
from banking_server.client.agent.toolbox import Toolbox

from ..kit.model import scripted_model
from .support import Consent

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

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
    told = load_agent(file)
    with scripted_model(REPLIES) as model:
        settings = ModelSettings(url=model.url, name="scripted")
        async with Endpoint(settings) as endpoint, Client(mcp) as client:
            toolbox = await Toolbox.gather({"smart_filesystem": client}, allowed=told.tools)
            agent = Agent(endpoint, toolbox, consent=Consent(), system_prompt=told.system_prompt)
            run = await agent.ask("Create a report with my tasks")
    assert run.answer == json.loads(REPLIES[-1])["response"]
    assert written == {"~/workspace/report.json": "..."}
    first, second, third = (request["messages"] for request in model.requests)
    assert first[0]["content"].startswith(told.system_prompt.strip())
    described = "Tool: write_file\nDescription: Write a file.\nArguments:\n- path ("
    assert described in first[0]["content"]
    # Each result is in the context of the next reply.
    assert "~/workspace/" in second[-1]["content"]
    assert "Written." in third[-1]["content"]
