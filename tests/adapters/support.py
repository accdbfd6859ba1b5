"""One call through each framework's own machinery, and what its model is then told."""

import importlib.util
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tool_chaining import TrustHints

from ..kit.command import command, environment
from ..kit.model import Reply, scripted_model

PAGE = "specs/python/tool_chaining/adapters/README.md"

Server = str | Path | tuple[str, ...]
"""A server's URL, the command that starts one over stdio, or the database of a bank for one."""

Call = tuple[str, dict[str, Any]]

TRUSTED = {"consent": TrustHints()}
"""For a server whose hints the user trusts."""


def missing(module: str, package: str) -> str | None:
    return None if importlib.util.find_spec(module) else f"{module} is not installed: {package}"


def stdio(server: Path | tuple[str, ...]) -> dict[str, Any]:
    """How a server is started."""
    if isinstance(server, Path):
        server = tuple(command("--database", str(server), "--customer", "CUST001"))
    program, *arguments = server
    env = {"PYTHONPATH": environment()["PYTHONPATH"], "PATH": os.environ["PATH"]}
    return {"command": program, "args": arguments, "env": env}


async def be_called_back(*question: Any) -> Any:
    """Answer FastMCP's question about the handoff."""
    from fastmcp.client.elicitation import ElicitResult

    [name] = question[2].requested_schema["properties"]
    return ElicitResult(action="accept", content={name: "callback"})


def fastmcp_client(server: Server, **options: Any) -> Any:
    from fastmcp.client.transports import StdioTransport

    from tool_chaining.adapters.fastmcp import ChainingClient

    options.setdefault("chaining", TRUSTED)
    target = server if isinstance(server, str) else StdioTransport(**stdio(server))
    return ChainingClient(target, elicitation_handler=be_called_back, **options)


async def with_fastmcp(server: Server, call: Call, **options: Any) -> str:
    """No model: what the caller is given."""
    async with fastmcp_client(server, **options) as client:
        result = await client.call_tool_mcp(*call)
    return json.dumps([block.text for block in result.content], ensure_ascii=False)


@asynccontextmanager
async def agents_server(server: Server, **options: Any) -> AsyncIterator[Any]:
    from tool_chaining.adapters.openai_agents import ChainingStdio, ChainingStreamableHttp

    options.setdefault("chaining", TRUSTED)
    options.setdefault("client_session_timeout_seconds", 60)
    made: Any = ChainingStreamableHttp if isinstance(server, str) else ChainingStdio
    params = {"url": server} if isinstance(server, str) else stdio(server)
    async with made(params, **options) as connected:
        yield connected


async def with_openai_agents(server: Server, call: Call, **options: Any) -> str:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    with scripted_model([Reply(calls=[call]), Reply("Done.")]) as model:
        async with (
            AsyncOpenAI(base_url=model.url, api_key="none") as endpoint,
            agents_server(server, **options) as connected,
        ):
            chat = OpenAIChatCompletionsModel(model="scripted", openai_client=endpoint)
            agent = Agent("clerk", model=chat, mcp_servers=[connected])
            assert (await Runner.run(agent, "Go on.")).final_output == "Done."
    # What the model was told of its one call.
    assert len(model.requests) == 2
    roles = [message["role"] for message in model.requests[1]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    content = model.requests[1]["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


FRAMEWORKS: dict[str, Callable[..., Awaitable[str]]] = {
    "FastMCP": with_fastmcp,
    "OpenAI Agents": with_openai_agents,
}
"""Pydantic AI has `test_pydantic_ai.py`."""
