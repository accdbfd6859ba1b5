"""A small agent for each framework, as its documentation writes one: `FRAMEWORK URL COMMAND`.

The URL is the model's, the command starts the server. Nothing of this project is imported.
"""

import asyncio
import shlex
import sys

FRAMEWORK, URL, LINE = sys.argv[1:]
COMMAND, *ARGUMENTS = shlex.split(LINE)
REQUEST = "Move 250 from Primary Checking."


async def agent_framework() -> None:
    from agent_framework import Agent, MCPStdioTool
    from agent_framework.openai import OpenAIChatCompletionClient

    model = OpenAIChatCompletionClient(model="scripted", base_url=URL, api_key="none")
    async with (
        MCPStdioTool(name="bank", command=COMMAND, args=ARGUMENTS) as bank,
        Agent(client=model, tools=bank) as agent,
    ):
        await agent.run(REQUEST)


async def google_adk() -> None:
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    server = StdioServerParameters(command=COMMAND, args=ARGUMENTS)
    bank = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    model = LiteLlm(model="openai/scripted", api_base=URL, api_key="none")
    runner = InMemoryRunner(agent=LlmAgent(name="clerk", model=model, tools=[bank]))
    await runner.run_debug(REQUEST)
    await runner.close()


async def llama_index() -> None:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    bank = McpToolSpec(client=BasicMCPClient(COMMAND, args=ARGUMENTS, timeout=60))
    able = {"is_chat_model": True, "is_function_calling_model": True}
    model = OpenAILike(model="scripted", api_base=URL, api_key="none", **able)
    await FunctionAgent(llm=model, tools=await bank.to_tool_list_async()).run(REQUEST)


FRAMEWORKS = {made.__name__: made for made in (agent_framework, google_adk, llama_index)}

if __name__ == "__main__":
    asyncio.run(FRAMEWORKS[FRAMEWORK]())
