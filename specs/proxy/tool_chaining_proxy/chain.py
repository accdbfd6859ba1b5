"""What the proxy answers to a request: for a `tools/call`, the result of a whole chain.

The library decides what to follow, and merges the results as JSON. So members that the SDK's models
do not know pass unchanged.
"""

import logging
import secrets
import time
from contextvars import copy_context
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT
from opentelemetry.trace import get_current_span

from tool_chaining import IDENTIFIER, ChainResult, Follower, FollowUpStatus, Outcome
from tool_chaining.hosting.refused import telling_refusals
from tool_chaining.operator import write_line
from tool_chaining.text import one_line
from tool_chaining_proxy import NAME, eras
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.exchange import Channel, Exchange
from tool_chaining_proxy.session import Session
from tool_chaining_proxy.upstream import Upstream

logger = logging.getLogger(__name__)


def begin(session: Session, message: Json, channel: Channel) -> Exchange:
    """Begin to answer a request of the client, or continue it with the client's answers.

    Raises MCPError.
    """
    params = message.get("params") or {}
    if not isinstance(params.get("_meta") or {}, dict):
        raise MCPError(code=INVALID_PARAMS, message="The member _meta must be an object.")
    if session.declared.modern and "requestState" in params:
        return session.resumed(message, channel)
    declared = session.declared
    if declared.modern:
        declared = eras.in_request(params, declared.revision)
    exchange = Exchange(message, channel, declared, session.options)
    session.tasks.start_soon(_run, session, exchange)
    return exchange


async def _run(session: Session, exchange: Exchange) -> None:
    try:
        with session.running(exchange):
            await exchange.run(lambda: _answer(session, exchange))
    except Exception:  # One request must not end those of others.
        logger.exception("%s failed", exchange.method)


async def _answer(session: Session, exchange: Exchange) -> Json:
    """Return the result of a request of the client, or the one that was sent. Raises MCPError."""
    method = exchange.method
    try:
        upstream = await session.upstream()
    except MCPError as error:
        # A client of both revisions then sends `initialize`, and gets the error there.
        if method != "server/discover":
            write_line(f"{NAME}: {one_line(error.message)}")
        raise
    if method == ("server/discover" if upstream.modern else "initialize"):
        return eras.greeting(upstream.greeting)
    # A task of 2025-11-25 has its result later. Then the client handles it.
    if method == "tools/call" and "task" not in exchange.params:
        return await _call(session, exchange, upstream)
    result = await session.pass_on(exchange)
    if method == "tools/list" and session.options.recorder is not None:
        session.options.recorder.note_tools(result)
    if method == "tools/list" and (session.follows or session.options.rules):
        return _without_output_schemas(result)
    return result


async def _call(session: Session, exchange: Exchange, upstream: Upstream) -> Json:
    """Make a call, follow its chain, and answer the client with one result for the whole chain.

    A result without a directive is sent unchanged, as is any result of a server that is not
    followed. If the first call has no result, the client gets the server's error. The chain ends
    only when the answer is written (TC-C-55).
    """
    params, options = exchange.params, session.options
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return await session.request(exchange, "tools/call", params)
    caller = _Caller(session, exchange, upstream)
    answers: list[Json | MCPError] = []

    async def deliver(chain: ChainResult) -> None:
        if chain.outcome is not Outcome.CANCELLED:
            answers.append(_outcome(chain, caller.first))
            await exchange.answer(answers[0])

    follower = Follower(
        caller,
        consent=options.consent(exchange.ask),
        conversation=session.conversation,
        limit=options.limit,
        validate=False,  # Nobody trusts the server: it validates the arguments itself.
        call_timeout=options.call_timeout,
        total_timeout=options.time_limit,
        follow_unadvertised=options.follow_unadvertised,
        on_end=deliver,
        rules=options.rules,
        tools=session.tools,
    )
    meta = {k: v for k, v in exchange.meta.items() if k != IDENTIFIER}
    chain = await follower.call_tool(name, arguments, meta=meta)
    exchange.on_loss = partial(follower.not_delivered, chain)
    [outcome] = answers
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def _outcome(chain: ChainResult, first: Json | None) -> Json | MCPError:
    """Return the answer to the client's call."""
    span = get_current_span()
    span.set_attribute("tool_chaining.chain_id", chain.chain_id)
    span.set_attribute("tool_chaining.outcome", str(chain.outcome))
    if not chain.steps:
        # A result that is not complete, such as a task, is for the client to handle.
        return first if first is not None else _first_failure(chain)
    merged = chain.merged_json()
    changed = chain.followed and chain.outcome is not Outcome.COMPLETED
    if not changed and not chain.follow_ups:
        return merged
    return {**merged, "_meta": {**(merged.get("_meta") or {}), IDENTIFIER: summary(chain)}}


class _Caller:
    """The server behind the proxy, for the calls of the library in one chain."""

    def __init__(self, session: Session, exchange: Exchange, upstream: Upstream) -> None:
        self.protocol_version = upstream.revision
        self.server_capabilities = upstream.capabilities
        self.first: Json | None = None
        """The result of the first call, complete or not."""
        self._session = session
        self._exchange = exchange
        self._params: Json | None = exchange.params
        self._began = time.time()

    async def call_tool(
        self,
        name: str,
        arguments: Json,
        /,
        *,
        read_timeout_seconds: float | None,
        meta: Any,
    ) -> Json:
        exchange = self._exchange
        # The chain's time stands still while the server asks the client.
        exchange.context = copy_context()
        # Only the first call has the other members of the client's request.
        params = {**(self._params or {"name": name, "arguments": arguments}), "_meta": meta}
        first, self._params = self._params is not None, None
        began = self._began if first else time.time()
        result: Json | None = None
        if not first and exchange.token is not None:
            # A token belongs to one request. The client gets progress with its own token.
            exchange.begin_step()
            params["_meta"] = {**meta, "progressToken": secrets.token_urlsafe(8)}
        try:
            with telling_refusals(), exchange.limited(read_timeout_seconds):
                result = await self._session.request(exchange, "tools/call", params, first)
        except MCPError as error:
            if exchange.rounds:
                # The server has already acted, and the code may be the client's own: not a refusal.
                raise RuntimeError(error.message) from error
            raise
        finally:
            if (recorder := self._session.options.recorder) is not None:
                call = (name, arguments)
                recorder.add(self._session.name, began, call, result, own=first)
        if first:
            self.first = result
        return result

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Json:
        params = {"cursor": cursor} if cursor is not None else {}
        return await self._session.request(self._exchange, "tools/list", params)


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


def _without_output_schemas(listed: Json) -> Json:
    """Return a page of `tools/list` without output schemas: merged results may violate them."""
    tools = listed.get("tools")
    if not isinstance(tools, list):
        return listed
    kept = [
        {k: v for k, v in tool.items() if k != "outputSchema"} if isinstance(tool, dict) else tool
        for tool in tools
    ]
    return {**listed, "tools": kept}


def _first_failure(chain: ChainResult) -> MCPError:
    """Return the error of the first call as the server sent it."""
    error: BaseException | None = chain.error
    if isinstance(error, RuntimeError):
        error = error.__cause__
    if isinstance(error, MCPError):
        return error
    if isinstance(error, TimeoutError):
        return MCPError(code=REQUEST_TIMEOUT, message="The time for the call ran out.")
    return MCPError(code=INTERNAL_ERROR, message=chain.detail)
