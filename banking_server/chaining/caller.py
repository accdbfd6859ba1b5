"""What the client half needs of a client: two methods, and MCP's JSON as their results."""

import inspect
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from mcp_types import CallToolResult, ListToolsResult, Tool
from pydantic import BaseModel

from banking_server.chaining.content import on_the_wire
from banking_server.chaining.negotiation import has_declared

Wire = BaseModel | Mapping[str, Any]
"""An MCP object: parsed JSON as on the wire, or a model that an SDK (any version) made of it."""

MAX_PAGES: Final = 100
"""Pages of `tools/list` that are read at most, so that an endless list cannot hang a chain."""

MAX_TEXT: Final = 4_000_000
"""Characters that a server's tools may have all together, with their descriptions and schemas."""


class ToolCaller(Protocol):
    """A client that is connected to one server.

    `mcp.Client` already is one. To wrap another client, write these two methods::

        class Shop:
            async def call_tool(self, name, arguments, *, read_timeout_seconds, meta):
                params = {"name": name, "arguments": arguments, "_meta": meta}
                return await self.request("tools/call", params, timeout=read_timeout_seconds)

            async def list_tools(self, *, cursor):
                return await self.request("tools/list", {"cursor": cursor} if cursor else {})

    One object stands for one endpoint, and for one principal in whose name every call is made: all
    calls of a chain go through it (TC-C-07).

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

        Send `arguments` exactly as they are (TC-C-06), and `meta`, a JSON object, as the `_meta` of
        the request: it carries the provenance (TC-C-28). `read_timeout_seconds` are what one
        request may take; None means no limit from here. Return after the server's questions
        (elicitation, sampling) are answered. Return an `isError` result; do not raise it. Do not
        send the request again if its answer was lost (TC-C-39). An exception that has the JSON-RPC
        error as `error`, as those of the SDK have, says by its code whether the server acted.
        """
        ...

    def list_tools(self, *, cursor: str | None) -> Awaitable[Wire]:
        """Return one page of `tools/list`: the first one if `cursor` is None.

        The method may also have a parameter `cache_mode`, as `mcp.Client.list_tools` has: "use" for
        a list that was kept, if its `ttlMs` allows that, and "refresh" for one that is read now.
        """
        ...


def advertised(client: ToolCaller) -> bool:
    """Return whether the server is known to advertise the extension (TC-C-03).

    Where a client has no `protocol_version` and `server_capabilities`, nobody knows. Nor does an
    `mcp.Client` that was told the revision (`mode`): it asks no server, and has no capabilities.
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


_chaining: ContextVar[bool] = ContextVar("_chaining", default=False)


@contextmanager
def without_result_check(client: ToolCaller) -> Iterator[None]:
    """Let an `mcp.Client` return what the call inside brings, and not refuse it.

    The SDK checks structured content after the result has come, and raises where it is not valid:
    the result would be lost (TC-C-24). `check_result` checks it afterwards. What the client does
    for others stays as it is.
    """
    session: Any = getattr(client, "session", None)
    check = getattr(session, "validate_tool_result", None)
    if check is not None and not hasattr(check, "later"):

        async def checked(name: str, result: CallToolResult) -> None:
            if not _chaining.get():
                await check(name, result)

        checked.later = check  # type: ignore[attr-defined]
        session.validate_tool_result = checked
    token = _chaining.set(True)
    try:
        yield
    finally:
        _chaining.reset(token)


async def check_result(client: ToolCaller, name: str, result: CallToolResult) -> None:
    """Check a result as an `mcp.Client` would have done. Raises RuntimeError if it refuses it."""
    session: Any = getattr(client, "session", None)
    later = getattr(getattr(session, "validate_tool_result", None), "later", None)
    if later is not None and not result.is_error:
        await later(name, result)


async def list_all_tools(client: ToolCaller) -> list[Tool]:
    """Return the tools that a server lists now, on all its pages; raises as `read_tools` does."""
    return (await read_tools(client, "refresh"))[0]


async def read_tools(client: ToolCaller, mode: str) -> tuple[list[Tool], bool]:
    """Return a server's tools on all pages (TC-C-12), and whether the client may have kept them.

    That can only be in the `mode` "use", of a client that has a cache, and of a list with `ttlMs`.
    Raises what `list_tools` raises, and ValueError if it returns no tool list, or too long a one.
    """
    list_tools: Any = client.list_tools
    has_cache = "cache_mode" in inspect.signature(list_tools).parameters
    options = {"cache_mode": mode} if has_cache else {}
    kept = has_cache and mode == "use"
    tools: list[Tool] = []
    text = 0
    cursors: list[str | None] = [None]
    for cursor in cursors:
        returned = await awaited(list_tools(cursor=cursor, **options), "list_tools")
        page = _read(ListToolsResult, returned, "list_tools")
        tools += page.tools
        kept = kept and page.ttl_ms > 0
        text += sum(len(str(tool.__dict__)) for tool in page.tools)
        if text > MAX_TEXT:
            raise ValueError(f"the server's tools have more than {MAX_TEXT:,} characters")
        if page.next_cursor not in cursors and len(cursors) < MAX_PAGES:
            cursors.append(page.next_cursor)
    return tools, kept


def tool_result(returned: Wire) -> CallToolResult:
    """Return what `ToolCaller.call_tool` returned as a result; an SDK result is returned unchanged.

    Raises ValueError if it is not the complete result of a `tools/call`. An interim one, which on
    2025-11-25 has a member `task`, has no directive (TC-D-11), and a `resultType` that is not known
    makes it no result at all.
    """
    wire = {} if isinstance(returned, CallToolResult) else _json(returned, "call_tool")
    kind = getattr(returned, "result_type", "task" if "task" in wire else "complete")
    kind = wire.get("resultType", kind)
    if kind != "complete":
        what = "an interim result" if kind in ("input_required", "task") else "no valid result"
        raise ValueError(f"call_tool returned {what} (resultType {kind!r})")
    return _read(CallToolResult, returned, "call_tool")


_Model = TypeVar("_Model", CallToolResult, ListToolsResult)


def _read(model: type[_Model], returned: Wire, method: str) -> _Model:
    if isinstance(returned, model):
        return returned
    return model.model_validate(_json(returned, method), by_alias=True, by_name=False)


def _json(returned: Wire, method: str) -> Mapping[str, Any]:
    if isinstance(returned, BaseModel):
        # Written as JSON, a number that no double can hold would become null.
        kept = {
            field.alias or name: getattr(returned, name)
            for name, field in type(returned).model_fields.items()
            if isinstance(getattr(returned, name), dict)
        }
        return {**on_the_wire(returned), **kept}
    if isinstance(returned, Mapping):
        return returned
    raise ValueError(f"{method} returned {type(returned).__name__}, which is not a JSON object")
