"""Adapters that let other frameworks follow chains: thin wrappers over `tool_chaining.ToolCaller`.

There is one module for each framework. Import a module only if its framework is installed:

- `fastmcp`: a FastMCP `Client` that follows chains;
- `pydantic_ai`: a toolset for agents of Pydantic AI;
- `fastmcp_server`: the server half for FastMCP;
- `openai_agents`: MCP servers of the OpenAI Agents SDK that follow chains;
- `langchain`: an interceptor for LangChain's and LangGraph's `langchain-mcp-adapters`;
- `mcp_1`: a `ClientSession` of `mcp` 1.x, for other frameworks on it;
- `one_result`: shared by the adapters: returns a chain as the single result of one call.

`README.md` has a program for each framework, and says what each one cannot do.
"""
