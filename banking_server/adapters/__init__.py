"""Other people's frameworks follow chains: a few lines for each, over `chaining.ToolCaller`.

One module for each framework, which is imported with it, and not before:

- `fastmcp`: a FastMCP `Client` that follows, also in Pydantic AI;
- `fastmcp_server`: the server half for FastMCP;
- `openai_agents`: the OpenAI Agents SDK's MCP servers that follow;
- `langchain`: an interceptor for LangChain's and LangGraph's `langchain-mcp-adapters`;
- `mcp_1`: a `ClientSession` of `mcp` 1.x, for what is built on that;
- `one_result`: what they have in common: a chain becomes the one result of the one call.

Each in five lines, and what each framework cannot do: `README.md`.
"""
