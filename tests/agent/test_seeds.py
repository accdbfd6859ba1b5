"""The agent's two origins, word for word: tools in a prompt, and an agent that calls itself."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from banking_server.agent import Agent, Endpoint, Toolbox, load_agent

from ..kit.model import scripted_model
from .support import Consent, settings

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

REPLIES = [
    """{
  "response": "I'll discover my permissions first",
  "mcp": {
    "tool": "smart_filesystem",
    "method": "get_allowed_paths",
    "params": {}
  }
}""",
    """{
  "response": "Based on my permissions, I'll save to ~/workspace/",
  "mcp": {
    "tool": "smart_filesystem",
    "method": "write_file",
    "params": {
      "path": "~/workspace/report.json",
      "content": "..."
    }
  }
}""",
    """{
  "response": "Report created successfully at ~/workspace/report.json!"
}""",
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


def filesystem(written: dict[str, str]) -> MCPServer[Any]:
    mcp: MCPServer[Any] = MCPServer("smart_filesystem")

    @mcp.tool()
    def get_allowed_paths() -> dict[str, Any]:
        """Say where files may be written."""
        return {"local_filesystem": {"read_write_paths": ["~/workspace/"]}}

    @mcp.tool()
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        written[path] = content
        return "Written."

    return mcp


async def test_the_seeds_agent_makes_its_calls_until_a_reply_has_none(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(AGENTS)
    configured = load_agent(file)
    written: dict[str, str] = {}
    with scripted_model(REPLIES) as model:
        async with (
            Endpoint(settings(model.url)) as endpoint,
            Client(filesystem(written)) as client,
        ):
            toolbox = await Toolbox.gather({"smart_filesystem": client}, allowed=configured.tools)
            agent = Agent(
                endpoint,
                toolbox,
                consent=Consent(True),
                system_prompt=configured.system_prompt,
            )
            run = await agent.ask("Create a report with my tasks")
    assert run.answer == json.loads(REPLIES[-1])["response"]
    assert [called.step.tool for called in run.calls] == ["get_allowed_paths", "write_file"]
    assert written == {"~/workspace/report.json": "..."}
    first, second, third = (request["messages"] for request in model.requests)
    told = first[0]["content"]
    assert "Tool: write_file\nDescription: Write a file.\nArguments:\n- path (" in told
    assert told.startswith(configured.system_prompt.strip())
    # Each result is in the context of the next reply.
    assert "~/workspace/" in second[-1]["content"]
    assert "Written." in third[-1]["content"]
