"""A `tools/call` whose chain is followed: one call for the client, several for the server.

The library decides what is followed. It gets the text of each content item in place of the item. So
an item that no model of the SDK knows is passed on unchanged.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, REQUEST_TIMEOUT
from opentelemetry.trace import get_current_span

from tool_chaining import (
    IDENTIFIER,
    META_KEY,
    ChainResult,
    call_tool_with_chaining,
)
from tool_chaining.content import for_user_alone, in_text
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.link import Link
from tool_chaining_proxy.questions import NotAnswered, Running
from tool_chaining_proxy.upstream import Upstream

_REFERENCE: Final = "tool-chaining-proxy/item"


async def call(link: Link, running: Running, params: Json) -> Json:
    """Make the call, follow its chain, and return one result for the whole chain.

    A result without a directive is returned unchanged. If the first call has no result, this raises
    the server's MCPError.
    """
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return await link.request(running, "tools/call", params)
    caller = _Caller(link, running, params, await link.upstream())
    options = link.options
    meta = {k: v for k, v in (params.get("_meta") or {}).items() if k != IDENTIFIER}
    chain = await call_tool_with_chaining(
        caller,
        name,
        arguments,
        limit=options.limit,
        consent=options.consent(running.ask),
        validate=False,  # Nobody trusts the server: it validates the arguments itself.
        call_timeout=options.call_timeout,
        total_timeout=options.time_limit,
        meta=meta,
        follow_unadvertised=options.follow_unadvertised,
        in_doubt=link.in_doubt,
    )
    span = get_current_span()
    span.set_attribute("tool_chaining.chain_id", chain.chain_id)
    span.set_attribute("tool_chaining.outcome", str(chain.outcome))
    if chain.error is not None and not chain.steps:
        # A result that is not complete, such as a task, is for the client to handle.
        if caller.first is not None:
            return _without_directive(caller.first)
        raise _first_failure(chain.error, chain.detail)
    if caller.first is None or (len(chain.steps) == 1 and not _has_directive(caller.first)):
        return caller.first or {}
    return caller.merged(chain)


class _Caller:
    """The server behind the proxy, for the calls of the library in one chain."""

    def __init__(self, link: Link, running: Running, params: Json, upstream: Upstream) -> None:
        self.protocol_version = upstream.revision
        self.server_capabilities = upstream.capabilities
        self.first: Json | None = None
        """The unchanged result of the first call."""
        self._link = link
        self._running = running
        self._params: Json | None = params
        self._items: list[Any] = []

    async def call_tool(
        self,
        name: str,
        arguments: Json,
        /,
        *,
        read_timeout_seconds: float | None,
        meta: Any,
    ) -> Json:
        # Only the first call has the other members of the client's request.
        params = {**(self._params or {"name": name, "arguments": arguments}), "_meta": meta}
        first, self._params = self._params is not None, None
        if not first and self._running.token is not None:
            # A token belongs to one request. The client gets progress with its own token.
            self._running.begin_step()
            params["_meta"] = {**(meta or {}), "progressToken": secrets.token_urlsafe(8)}
        with self._running.limited(read_timeout_seconds):
            try:
                result = await self._link.request(self._running, "tools/call", params, first)
            except NotAnswered as error:
                # The code is the client's. It does not show that the server did nothing.
                raise RuntimeError(error.message) from error
        if first:
            self.first = result
        return self._in_references(result)

    async def list_tools(self, *, cursor: str | None) -> Json:
        return await self._link.list_tools(self._running, cursor=cursor)

    def _in_references(self, result: Json) -> Json:
        """Return a result whose content items are replaced by references to them.

        A reference has the text of its item, and its audience if that is the user only: the text of
        later steps is added to `followUps`.
        """
        content = result.get("content")
        if not isinstance(content, list):
            return result
        references = []
        for item in content:
            known = item if isinstance(item, Mapping) else {}
            meta = known.get("_meta")
            kept = dict(meta) if isinstance(meta, Mapping) else {}
            reference: Json = {"type": "text", "text": in_text(known)}
            reference["_meta"] = {**kept, _REFERENCE: len(self._items)}
            if for_user_alone(known):
                reference["annotations"] = {"audience": ["user"]}
            references.append(reference)
            self._items.append(item)
        return {**result, "content": references}

    def merged(self, chain: ChainResult) -> Json:
        """Return the chain as the one result of the client's one call (TC-C-32 to TC-C-36)."""
        result = chain.merged()
        merged = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        content = []
        for item in merged["content"]:
            reference = (item.get("_meta") or {}).get(_REFERENCE)
            content.append(item if reference is None else self._items[reference])
        passed = _without_directive(self.first or {})
        if "structuredContent" in passed:
            passed["structuredContent"] = result.structured_content
        if merged.get("isError") or "isError" in passed:
            passed["isError"] = merged["isError"]
        meta = {**(passed.get("_meta") or {}), IDENTIFIER: summary(chain)}
        return {**passed, "content": content, "_meta": meta}


def summary(chain: ChainResult) -> Json:
    """Return what was followed, for clients that read it: `followedChain` of the schema.

    Some hosts show `_meta` to their model. So it has no title of a directive (TC-C-40), and no tool
    that the server does not list (TC-C-53).
    """
    steps = iter(chain.steps[1:])
    follow_ups: list[Json] = []
    for follow_up in chain.follow_ups:
        entry: Json = {"status": follow_up.status}
        if follow_up.listed:
            entry |= {"tool": follow_up.tool, "arguments": follow_up.arguments}
        step = next(steps, None)
        if step is not None:
            entry["isError"] = step.result.is_error is True
        follow_ups.append(entry)
    return {"chainId": chain.chain_id, "outcome": chain.outcome, "followUps": follow_ups}


def without_output_schemas(listed: Json) -> Json:
    """Return a page of `tools/list` without output schemas: merged results may break them."""
    tools = listed.get("tools")
    if not isinstance(tools, list):
        return listed
    kept = [
        {k: v for k, v in tool.items() if k != "outputSchema"} if isinstance(tool, dict) else tool
        for tool in tools
    ]
    return {**listed, "tools": kept}


def _has_directive(result: Json) -> bool:
    meta = result.get("_meta")
    return isinstance(meta, Mapping) and META_KEY in meta


def _without_directive(result: Json) -> Json:
    if not _has_directive(result):
        return dict(result)
    return {**result, "_meta": {k: v for k, v in result["_meta"].items() if k != META_KEY}}


def _first_failure(error: Exception, detail: str) -> Exception:
    cause = error.__cause__ if isinstance(error, RuntimeError) else error
    if isinstance(cause, MCPError):
        return cause
    if isinstance(cause, TimeoutError):
        return MCPError(code=REQUEST_TIMEOUT, message="The time for the call ran out.")
    return MCPError(code=INTERNAL_ERROR, message=detail)
