"""A `tools/call` whose chain is followed: one call for the client, several for the server.

The library decides what to follow, and merges the results as JSON. So members that the SDK's models
do not know pass unchanged.
"""

import secrets
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, REQUEST_TIMEOUT
from opentelemetry.trace import get_current_span

from tool_chaining import IDENTIFIER, ChainResult, Follower, FollowUpStatus, Outcome
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.hosting.refused import telling_refusals
from tool_chaining_proxy.link import Link
from tool_chaining_proxy.questions import Running
from tool_chaining_proxy.upstream import Upstream


async def call(link: Link, running: Running, params: Json) -> Json:
    """Make the call, follow its chain, and return one result for the whole chain.

    A result without a directive is returned unchanged, as is any result of a server that is not
    followed. If the first call has no result, this raises the server's MCPError.
    """
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return await link.request(running, "tools/call", params)
    caller = _Caller(link, running, params, await link.upstream())
    options = link.options
    follower = Follower(
        caller,
        consent=options.consent(running.ask),
        conversation=link.conversation,
        limit=options.limit,
        validate=False,  # Nobody trusts the server: it validates the arguments itself.
        call_timeout=options.call_timeout,
        total_timeout=options.time_limit,
        follow_unadvertised=options.follow_unadvertised,
        rules=options.rules,
        tools=link.tools,
    )
    meta = {k: v for k, v in (params.get("_meta") or {}).items() if k != IDENTIFIER}
    chain = await follower.call_tool(name, arguments, meta=meta)
    running.on_loss = partial(follower.not_delivered, chain)
    span = get_current_span()
    span.set_attribute("tool_chaining.chain_id", chain.chain_id)
    span.set_attribute("tool_chaining.outcome", str(chain.outcome))
    if not chain.steps:
        # A result that is not complete, such as a task, is for the client to handle.
        if caller.first is not None:
            return caller.first
        raise _first_failure(chain)
    merged = chain.merged_json()
    changed = chain.followed and chain.outcome is not Outcome.COMPLETED
    if not changed and not chain.follow_ups:
        return merged
    return {**merged, "_meta": {**(merged.get("_meta") or {}), IDENTIFIER: summary(chain)}}


class _Caller:
    """The server behind the proxy, for the calls of the library in one chain."""

    def __init__(self, link: Link, running: Running, params: Json, upstream: Upstream) -> None:
        self.protocol_version = upstream.revision
        self.server_capabilities = upstream.capabilities
        self.first: Json | None = None
        """The result of the first call, complete or not."""
        self._link = link
        self._running = running
        self._params: Json | None = params

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
            params["_meta"] = {**meta, "progressToken": secrets.token_urlsafe(8)}
        try:
            with telling_refusals(), self._running.limited(read_timeout_seconds):
                result = await self._link.request(self._running, "tools/call", params, first)
        except MCPError as error:
            if self._running.rounds:
                # The server has already acted, and the code may be the client's own: not a refusal.
                raise RuntimeError(error.message) from error
            raise
        if first:
            self.first = result
        return result

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Json:
        params = {"cursor": cursor} if cursor is not None else {}
        return await self._link.request(self._running, "tools/list", params)


def summary(chain: ChainResult) -> Json:
    """Return what was followed, for clients that read it: `followedChain` of the schema.

    Some hosts show `_meta` to their model. So it has no title of a directive, no tool that the
    server does not list, and no arguments of a call that was not made (TC-C-53).
    """
    follow_ups: list[Json] = []
    for follow_up in chain.follow_ups:
        entry: Json = {"status": follow_up.status}
        if follow_up.listed:
            entry["tool"] = follow_up.tool
        if follow_up.status is FollowUpStatus.MADE:
            entry |= {"arguments": follow_up.arguments, "isError": follow_up.is_error}
        follow_ups.append(entry)
    return {"chainId": chain.chain_id, "outcome": chain.outcome, "followUps": follow_ups}


def without_output_schemas(listed: Json) -> Json:
    """Return a page of `tools/list` without output schemas: merged results may violate them."""
    tools = listed.get("tools")
    if not isinstance(tools, list):
        return listed
    kept = [
        {k: v for k, v in tool.items() if k != "outputSchema"} if isinstance(tool, dict) else tool
        for tool in tools
    ]
    return {**listed, "tools": kept}


def _first_failure(chain: ChainResult) -> Exception:
    """Return the error of the first call as the server sent it."""
    error: BaseException | None = chain.error
    if isinstance(error, RuntimeError):
        error = error.__cause__
    if isinstance(error, MCPError):
        return error
    if isinstance(error, TimeoutError):
        return MCPError(code=REQUEST_TIMEOUT, message="The time for the call ran out.")
    return MCPError(code=INTERNAL_ERROR, message=chain.detail)
