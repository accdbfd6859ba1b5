"""What runs in an environment with LangChain, and so with `mcp` 1.x: one job a line, one answer.

A job says what is called, on which server, and which model (its URL) asks for it.
"""

import ast
import asyncio
import inspect
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

from banking_server.adapters.langchain import ChainInterceptor
from banking_server.chaining import FollowNonDestructive


class Always:
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
    chaining: Any = {"consent": Always() if job.get("always") else FollowNonDestructive()}
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


async def usage(job: dict[str, Any]) -> Any:
    """Run the lines of the page on the adapters, and use what they leave."""
    left: dict[str, Any] = dict(job.get("names", {}))
    if "session" in job:
        async with client_of(job).session("server") as left["session"]:
            await run_lines(job["lines"], left)
        return [block.text for block in left["chain"].content]
    await run_lines(job["lines"], left)
    [tool] = [tool for tool in await left["client"].get_tools() if tool.name == job["call"][0]]
    return [block["text"] for block in await tool.ainvoke(job["call"][1])]


async def run_lines(lines: str, names: dict[str, Any]) -> None:
    running = eval(compile(lines, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.isawaitable(running):
        await running


JOBS = {do.__name__: do for do in (agent, headers, usage)}


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
