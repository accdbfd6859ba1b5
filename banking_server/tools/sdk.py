"""The internal and provisional parts of the MCP SDK that the tools use.

The SDK keeps only documented names stable; a minor release may change the rest. The tools import
such parts here, so that only one file has to change. `tests/test_architecture.py` asserts that no
other module of the tools imports any.

- `Tool`, `FuncMetadata`, `ArgModelBase`: the SDK's model of a tool. There is no public way to
  refuse an unknown argument, to get arguments unconverted, or to publish an output schema that
  also allows a refusal. `ExactTool` builds the SDK's tool and changes these three things.
- `Tool.run`, `ToolError`, `UnexpectedToolError`: the errors of a tool. Only `__cause__` says which
  argument was wrong, or what crashed.
- `Context(...)`: made here for a call inside a call. The public `Context` belongs to the request,
  and would give the inner tool the answers to the outer tool's questions.
- `ServerSession.send_request` and `can_send_request`, `ServerMessageMetadata`: a request to a
  client of 2025-11-25 during a call. The public helper for sampling is deprecated.
- `CallNext`, `HandlerResult`: the types of a middleware, which the SDK calls provisional. Only a
  middleware sees every read of a resource.
- `MCPServer.call_tool`, which `calling.BankServer` overrides: the documentation does not promise
  that each `tools/call` uses it.
- `MCPServer._tool_input_schema`, which `calling.BankServer` overrides: the schema for the check of
  headers, which no tool of the bank has.
- The server's tool manager: the public `list_tools` makes a new list of all tools for each call.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from mcp import ServerSession
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool as RegisteredTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import ConfigDict

from banking_server.tools.titles import READABLE

__all__ = [
    "CallNext",
    "ExactTool",
    "HandlerResult",
    "RegisteredTool",
    "ToolError",
    "UnexpectedToolError",
    "can_send_request",
    "find_tool",
    "inner_context",
    "sample",
]

_LifespanT = TypeVar("_LifespanT")


class _AsSent(FuncMetadata):
    """Leaves arguments and results unconverted: the text `"null"` is a text, not a missing value.

    A result is already an instance of the model behind its schema.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged."""
        return data

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        """Return the result unchanged. Raises `TypeError` if it is not a result."""
        if not isinstance(result, CallToolResult | InputRequiredResult):
            raise TypeError(f"a tool returned {type(result).__name__}")
        return result


class ExactTool(RegisteredTool):
    """A tool that accepts exactly the arguments it declares, without conversion."""

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

        `output_schema` receives the schema of the result of `fn` and returns the published one.
        """
        tool = RegisteredTool.from_function(
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
        fields: dict[str, Any] = {name: getattr(tool, name) for name in RegisteredTool.model_fields}
        fields["parameters"] = exact.model_json_schema(by_alias=True)
        fields["fn_metadata"] = _AsSent(
            arg_model=exact,
            output_schema=metadata.output_schema and output_schema(metadata.output_schema),
            output_model=metadata.output_model,
            wrap_output=metadata.wrap_output,
        )
        return cls(**fields, **own)


def find_tool(server: MCPServer[Any], name: str) -> RegisteredTool | None:
    """Return the server's tool with this name, or None."""
    return server._tool_manager.get_tool(name)


def inner_context(outer: Context[_LifespanT, Any]) -> Context[_LifespanT, Any]:
    """Return the context for a call inside the call of `outer`, in the same request.

    The inner call gets no answers: those of the request answer the outer call's questions.
    """
    return Context(request_context=outer.request_context, mcp_server=outer.mcp_server)


def can_send_request(ctx: Context[Any, Any]) -> bool:
    """Return whether a request can be sent to the client now; not over stateless HTTP."""
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
