"""What the client half needs of a client: two methods, and MCP's JSON as their results."""

import inspect
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, TypeVar

from mcp_types import CallToolResult
from pydantic import BaseModel

from tool_chaining.content import on_the_wire
from tool_chaining.negotiation import has_declared

Wire = BaseModel | Mapping[str, Any]
"""An MCP object: parsed JSON as on the wire, or a model of it from an SDK of any version."""


class ToolCaller(Protocol):
    """A client that is connected to one server.

    `mcp.Client` already is one. To wrap another client, write these two methods::

        class Shop:
            async def call_tool(self, name, arguments, *, read_timeout_seconds, meta):
                params = {"name": name, "arguments": arguments, "_meta": meta}
                return await self.request("tools/call", params, timeout=read_timeout_seconds)

            async def list_tools(self, *, cursor):
                params = {} if cursor is None else {"cursor": cursor}
                return await self.request("tools/list", params)

    One object is one connection: one endpoint and one principal. All calls of a chain go through
    it (TC-C-07).

    The client itself declares the extension, when it connects or in each request (TC-C-01). If it
    does not, pass the declaration in `meta` to `call_tool_with_chaining`. Whether the server
    advertised it is read from two attributes, `protocol_version` and `server_capabilities`.
    """

    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        /,
        *,
        read_timeout_seconds: float | None,
        meta: Any,
    ) -> Awaitable[Wire]:
        """Make one `tools/call` and return its complete result.

        Send `arguments` exactly as they are (TC-C-06). Send `meta`, a JSON object, as the `_meta`
        of the request: it carries the provenance (TC-C-28). `read_timeout_seconds` is the time that
        one request may take; None means no limit. Return after the server's questions (elicitation,
        sampling) are answered. Return an `isError` result; do not raise it. Do not send the request
        again if its response was lost (TC-C-39). Give an exception the JSON-RPC error as `error`,
        as the SDK does: its code can say that the server did not act.
        """
        ...

    def list_tools(self, *, cursor: str | None) -> Awaitable[Wire]:
        """Return one page of `tools/list`: the first one if `cursor` is None.

        The method may also have a parameter `cache_mode`, as `mcp.Client.list_tools` has: "use"
        accepts a cached list if its `ttlMs` allows that, and "refresh" reads the list again.
        """
        ...


def advertised(client: ToolCaller) -> bool:
    """Return whether the server is known to advertise the extension (TC-C-03).

    It is not known of a client without `protocol_version` and `server_capabilities`, nor of an
    `mcp.Client` that was given the revision as `mode`: that one does not ask for capabilities.
    """
    revision = getattr(client, "protocol_version", None)
    capabilities = getattr(client, "server_capabilities", None)
    return isinstance(revision, str) and has_declared(capabilities, revision)


def awaited(returned: Any, method: str) -> Awaitable[Any]:
    """Return what a client's method returned. Raises TypeError unless it can be awaited."""
    if not inspect.isawaitable(returned):
        kind = type(returned).__name__
        raise TypeError(f"{method} returned {kind} at once: it must be an async method")
    return returned


def tool_result(returned: Wire) -> CallToolResult:
    """Return what `ToolCaller.call_tool` returned as a result; an SDK result is returned unchanged.

    Raises ValueError if it is not the complete result of a `tools/call`. An interim result, which
    on 2025-11-25 has a member `task`, has no directive (TC-D-11). A result with an unknown
    `resultType` is not valid.
    """
    wire = {} if isinstance(returned, CallToolResult) else _json(returned, "call_tool")
    kind = getattr(returned, "result_type", "task" if "task" in wire else "complete")
    kind = wire.get("resultType", kind)
    if kind != "complete":
        what = "an interim result" if kind in ("input_required", "task") else "no valid result"
        raise ValueError(f"call_tool returned {what} (resultType {kind!r})")
    return read_as(CallToolResult, returned, "call_tool")


_Model = TypeVar("_Model", bound=BaseModel)


def read_as(model: type[_Model], returned: Wire, method: str) -> _Model:
    """Return what a client's method returned as an SDK's model; a model of it is unchanged.

    Raises ValueError if it is no JSON object, and pydantic's `ValidationError` if it is not valid.
    """
    if isinstance(returned, model):
        return returned
    return model.model_validate(_json(returned, method), by_alias=True, by_name=False)


def _json(returned: Wire, method: str) -> Mapping[str, Any]:
    if isinstance(returned, BaseModel):
        # pydantic writes a number that no double can hold as null. So objects are kept as they are.
        kept = {
            field.alias or name: getattr(returned, name)
            for name, field in type(returned).model_fields.items()
            if isinstance(getattr(returned, name), dict)
        }
        return {**on_the_wire(returned), **kept}
    if isinstance(returned, Mapping):
        return returned
    raise ValueError(f"{method} returned {type(returned).__name__}, which is not a JSON object")
