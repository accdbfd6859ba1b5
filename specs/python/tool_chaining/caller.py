"""What the client half needs of a client."""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, Literal, Protocol

from tool_chaining.content import Json, on_the_wire
from tool_chaining.negotiation import NEGOTIATED_FROM

REFUSALS: Final = (-32020, -32021, -32022)
"""JSON-RPC errors of a server that refuses a request before acting on it: wrong headers, a missing
client capability, an unsupported protocol version (Not made, in the Terms)."""

INVALID_PARAMS: Final = -32602
"""The only other error that proves that the server answered."""


class ToolCaller(Protocol):
    """A client that is connected to one server.

    `mcp.Client` already is one. To wrap another client, write these four members::

        class Shop:
            protocol_version = "2025-11-25"
            server_capabilities = {"experimental": {"com.example/tool-chaining": {}}}

            async def call_tool(self, name, arguments, *, read_timeout_seconds, meta):
                params = {"name": name, "arguments": arguments, "_meta": meta}
                return await self.request("tools/call", params, timeout=read_timeout_seconds)

            async def list_tools(self, *, cursor, cache_mode):
                params = {} if cursor is None else {"cursor": cursor}
                return await self.request("tools/list", params)

    One object is one connection: one endpoint and one principal. All calls of a chain go through
    it (TC-C-07). The client itself declares the extension, when it connects or in each request
    (TC-C-01). Results are JSON objects, or models of any SDK with `model_dump`.
    """

    @property
    def protocol_version(self) -> str | None:
        """The protocol revision that the connection uses, such as "2026-07-28"."""
        ...

    @property
    def server_capabilities(self) -> Any:
        """The capabilities of the server, as JSON or as a model; None if the client never asked."""
        ...

    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        /,
        *,
        read_timeout_seconds: float | None,
        meta: Any,
    ) -> Awaitable[Any]:
        """Make one `tools/call` and return its complete result.

        Send `arguments` exactly as they are (TC-C-06). Send `meta`, a JSON object, as the `_meta`
        of the request: it carries the provenance (TC-C-28). `read_timeout_seconds` is the time that
        one request may take; None means no limit. Return after the server's questions (elicitation,
        sampling) are answered. Return an `isError` result; do not raise it. Do not send the request
        again if its response was lost (TC-C-39). Give an exception the JSON-RPC error as `error`,
        as the SDK does, or raise `CallRefused` if the server refused the call in another way.
        """
        ...

    def list_tools(self, *, cursor: str | None, cache_mode: Literal["refresh"]) -> Awaitable[Any]:
        """Return one page of `tools/list`, the first one if `cursor` is None.

        `cache_mode` is always "refresh": ask the server, and use no list that was read before.
        """
        ...


class CallRefused(Exception):
    """The server refused a call before it acted, for example with HTTP 401 or 403.

    Raise it from the client's own exception, which becomes the `error` of the chain.
    """


def check_caller(client: object) -> None:
    """Raise TypeError, with advice, if an object is not a `ToolCaller`."""
    kind = type(client)
    needed = ("protocol_version", "server_capabilities", "call_tool", "list_tools")
    # Reading a property of an unconnected `mcp.Client` raises.
    own = getattr(client, "__dict__", ())
    missing = [name for name in needed if not (hasattr(kind, name) or name in own)]
    if missing:
        raise TypeError(
            f"{kind.__name__} has no {', '.join(missing)}: see tool_chaining.ToolCaller"
        )
    if kind.__name__ == "ClientSession":
        raise TypeError(
            "a ClientSession cannot follow chains: use mcp.Client, or with mcp 1.x "
            "tool_chaining.adapters.mcp_1.SessionCaller(session)"
        )


def as_json(returned: Any) -> Json:
    """Return the return value of a client's method as a JSON object.

    Raises ValueError if it is not one.
    """
    if isinstance(returned, Mapping):
        return dict(returned)
    if not hasattr(returned, "model_dump"):
        raise ValueError(f"{type(returned).__name__} is not a JSON object")
    # pydantic writes a number too large for a double as null, so objects stay as they are.
    kept = {
        field.alias or name: getattr(returned, name)
        for name, field in type(returned).model_fields.items()
        if isinstance(getattr(returned, name), dict)
    }
    return {**on_the_wire(returned), **kept}


def error_code(error: Exception) -> Any:
    """Return the code of a JSON-RPC error, as an SDK raises it; None for any other exception."""
    return getattr(getattr(error, "error", None), "code", None)


def was_refused(error: Exception, revision: str | None) -> bool:
    """Return whether a server refused the call that raised `error` before it acted (TC-C-39).

    No other error proves that. The codes have no meaning before 2026-07-28. The SDK's servers also
    answer -32602 if a tool's own code rejects a value, perhaps after it has paid.
    """
    is_refusal = error_code(error) in REFUSALS and (revision or "") >= NEGOTIATED_FROM
    return isinstance(error, CallRefused) or is_refusal
