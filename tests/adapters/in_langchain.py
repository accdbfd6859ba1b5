"""What runs in an environment with LangChain, and so with `mcp` 1.x: one job a line, one answer.

A job says what is called, on which server, and which model (its URL) asks for it.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from mcp import types

from tool_chaining import ConsentPolicy, TrustHints
from tool_chaining.adapters.langchain import ChainInterceptor


class Always(ConsentPolicy):
    """A user who says yes to everything."""

    async def allows(self, proposal: Any) -> bool:
        return True


async def be_called_back(context: Any, params: Any, *more: Any) -> types.ElicitResult:
    [name] = params.requestedSchema["properties"]
    return types.ElicitResult(action="accept", content={name: "callback"})


def client_of(job: dict[str, Any]) -> MultiServerMCPClient:
    job["progress"] = []

    async def note(progress: float, *more: Any) -> None:
        job["progress"].append(progress)

    callbacks = Callbacks(on_elicitation=be_called_back, on_progress=note)
    return MultiServerMCPClient({"server": job["server"]}, callbacks=callbacks)


async def agent(job: dict[str, Any]) -> Any:
    """Let the model of a LangChain agent make its call; return what it is then told."""
    client = client_of(job)
    chaining: Any = {"consent": Always() if job.get("always") else TrustHints()}
    model = ChatOpenAI(model="scripted", base_url=job["model"], api_key="none")
    async with AsyncExitStack() as stack:
        if job["way"] == "session":
            session = await stack.enter_async_context(client.session("server"))
            follow = [ChainInterceptor(session, chaining=chaining)]
            tools = await load_mcp_tools(session, tool_interceptors=follow)
        else:
            client.tool_interceptors += [ChainInterceptor(client, chaining=chaining)]
            tools = await client.get_tools()
        ended = await create_agent(model, tools).ainvoke({"messages": [("user", "Go on.")]})
    *_, told, last = ended["messages"]
    assert last.content == "Done.", last
    texts = [block if isinstance(block, str) else block.get("text") for block in told.content]
    return {
        "told": "\n".join(texts),
        "artifact": told.artifact,
        "progress": job["progress"],
    }


async def headers(job: dict[str, Any]) -> Any:
    """Set a header in another interceptor, before ours."""
    client = client_of(job)

    async def authorize(request: Any, handler: Any) -> Any:
        return await handler(request.override(headers={"Authorization": job["authorization"]}))

    client.tool_interceptors += [authorize, ChainInterceptor(client)]
    [tool] = [tool for tool in await client.get_tools() if tool.name == job["call"]]
    return await tool.ainvoke({"reason": "Asked for."})


JOBS = {do.__name__: do for do in (agent, headers)}


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"answer": asyncio.run(JOBS[job["do"]](job))}
        except Exception as error:
            answer = {"raised": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
