"""What the tools borrow from the inner and the provisional parts of the MCP SDK.

The SDK promises to keep what its documentation names. A minor release may move the rest. What the
tools use of that rest is imported here, so that there is one place to mend; one piece is used
elsewhere, and named in the last point. `tests/test_sdk_seam.py` asserts each piece, and that no
other module of the tools imports any.

- `Tool`, `FuncMetadata`, `ArgModelBase`: how the SDK keeps a tool. There is no public way to refuse
  an unknown argument, to take arguments as they were sent, or to publish an output schema that
  also allows a refusal. `ExactTool` builds the SDK's own tool and changes these three things.
- `Tool.resolver_plans` and its `wire_key`: what the answers to a tool's questions are called. The
  SDK passes over any other.
- `Tool.run`, `ToolError`, `UnexpectedToolError`: how a tool fails. Its `__cause__` is the only way
  to learn which argument was wrong, or what crashed.
- `Context(...)`: made by hand, for a call inside a call. The public `Context` belongs to the
  request, and would give the inner tool the answers to the outer tool's questions.
- `ServerSession.send_request` and `can_send_request`, `ServerMessageMetadata`: the way back to a
  client of 2025-11-25 in the middle of a call. The public helper for sampling is deprecated.
- `CallNext`, `HandlerResult`: the types of a middleware, which the SDK calls provisional. There is
  no other place in which every read of a resource can be seen.
- `MCPServer.call_tool`, which `calling.BankServer` overrides: that each `tools/call` goes through
  it is nowhere promised.
- `MCPServer._tool_input_schema`, which `calling.BankServer` overrides: the schema that headers are
  checked against. No tool of ours has such headers.
- The server's tool manager: the public `list_tools` makes a list of all tools anew for each call.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from mcp import ServerSession
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    InputResponseRequestParams,
    InputResponses,
    ToolAnnotations,
)
from pydantic import ConfigDict

from banking_server.tools.titles import READABLE

__all__ = [
    "CallNext",
    "ExactTool",
    "HandlerResult",
    "ToolError",
    "UnexpectedToolError",
    "can_send_request",
    "find_tool",
    "inner_context",
    "question_keys",
    "sample",
]

_LifespanT = TypeVar("_LifespanT")


class _AsSent(FuncMetadata):
    """Takes arguments as they were sent: the text `"null"` is a text, not a missing value.

    And gives results as they were made: of the very model that their schema was made of.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged."""
        return data

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        """Return the result unchanged. Raises `TypeError` if it is none."""
        if not isinstance(result, CallToolResult | InputRequiredResult):
            raise TypeError(f"a tool returned {type(result).__name__}")
        return result


class ExactTool(Tool):
    """A tool that takes the arguments it declares, as they were sent, and no others."""

    @classmethod
    def declared(
        cls,
        fn: Callable[..., Any],
        *,
        title: str,
        description: str,
        annotations: ToolAnnotations,
        meta: dict[str, Any] | None,
        output_schema: Callable[[dict[str, Any]], dict[str, Any]],
        **own: Any,
    ) -> Self:
        """Return the tool that calls `fn`; `own` are the fields that a subclass adds.

        `output_schema` is given the schema of what `fn` returns, and returns the one to publish.
        """
        tool = Tool.from_function(
            fn, title=title, description=description, annotations=annotations, meta=meta
        )
        metadata = tool.fn_metadata
        exact: type[ArgModelBase] = type(
            metadata.arg_model.__name__,
            (metadata.arg_model,),
            {
                "model_config": ConfigDict(extra="forbid", title=title, **READABLE),
                "__module__": __name__,
            },
        )
        fields: dict[str, Any] = {name: getattr(tool, name) for name in Tool.model_fields}
        fields["parameters"] = exact.model_json_schema(by_alias=True)
        fields["fn_metadata"] = _AsSent(
            arg_model=exact,
            output_schema=metadata.output_schema and output_schema(metadata.output_schema),
            output_model=metadata.output_model,
            wrap_output=metadata.wrap_output,
        )
        return cls(**fields, **own)


def find_tool(server: MCPServer[Any], name: str) -> Tool | None:
    """Return the tool of this name that the server has now."""
    return server._tool_manager.get_tool(name)


def question_keys(tool: Tool) -> set[str]:
    """Return the names under which answers to the tool's questions may come (2026-07-28)."""
    return {plan.wire_key for plan in tool.resolver_plans.values()}


def inner_context(
    outer: Context[_LifespanT, Any],
    *,
    input_responses: InputResponses | None,
    request_state: str | None,
) -> Context[_LifespanT, Any]:
    """Return the context for a call inside the call of `outer`, in the same request.

    The inner call has a round of questions of its own: their answers, and the state it gave.
    """
    return Context(
        request_context=outer.request_context,
        mcp_server=outer.mcp_server,
        input_params=InputResponseRequestParams(
            input_responses=input_responses, request_state=request_state
        ),
    )


def can_send_request(ctx: Context[Any, Any]) -> bool:
    """Say whether a request can be sent to the client now; over stateless HTTP none can."""
    session: ServerSession = ctx.session
    return session.can_send_request


async def sample(ctx: Context[Any, Any], params: CreateMessageRequestParams) -> CreateMessageResult:
    """Ask the client's model over the open connection (2025-11-25).

    Raises `MCPError` for the client's own error, and pydantic's `ValidationError` for a result
    that is not one.
    """
    session: ServerSession = ctx.session
    return await session.send_request(
        CreateMessageRequest(params=params),
        CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
