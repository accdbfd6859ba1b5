"""The tool `multiplex_tools`: several calls in one, as the caller."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import Field

from banking_server.chaining.content import hidden_from_model
from banking_server.tools.calling import App
from banking_server.tools.declaration import bank_tool
from banking_server.tools.multiplex.request import MAX_STEPS, StepRequest, mistake
from banking_server.tools.multiplex.sequence import MultiplexOut, Steps
from banking_server.tools.scopes import READ_SCOPE


@bank_tool(
    title="Multiplex Tools",
    scope=READ_SCOPE,
    destructive=True,
    idempotent=False,
    moves_money=True,
    leads_on=True,
)
async def multiplex_tools(
    tools: Annotated[
        list[StepRequest],
        Field(min_length=1, max_length=MAX_STEPS, description="The requests, in order."),
    ],
    ctx: Context[App, Any],
) -> Annotated[CallToolResult, MultiplexOut] | InputRequiredResult:
    """Call several tools in sequence with one request, and get the list of their results. If an
    argument depends on an earlier result, refer to it with {"jmespath":
    "[0].structuredContent.accounts[1].accountId"}, or describe it for a language model with a
    string like "PROMPT_ARGUMENT: the id of the savings account". A step with `when` runs only if
    an earlier result is as it says. At most 10 steps, and 20 prompts."""
    listed = await ctx.mcp_server.list_tools()
    known = {tool.name: tool for tool in listed if not hidden_from_model(tool.meta)}
    refused = mistake(tools, known)
    if refused is not None:
        return refused
    return await Steps(tools, known, ctx).run()
