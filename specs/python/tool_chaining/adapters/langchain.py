"""LangChain and LangGraph: an interceptor of `langchain-mcp-adapters` that follows chains."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.types import CallToolResult

from tool_chaining import ChainResult, Conversation, Follower, Outcome
from tool_chaining.adapters.mcp_1 import SessionCaller
from tool_chaining.adapters.one_result import ChainOptions, as_one
from tool_chaining.consent import check_policy
from tool_chaining.content import on_the_wire

try:
    from langchain_mcp_adapters.callbacks import CallbackContext
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.sessions import create_session
except ImportError as error:
    needs = "needs LangChain: pip install langchain 'langchain-mcp-adapters>=0.3.2,<0.4'"
    raise ImportError(f"{__name__} {needs} ({error})") from None


class ChainInterceptor:
    """Makes an agent's tool call and follows the chain, all in one session of the server.

    With a session: `load_mcp_tools(session, tool_interceptors=[ChainInterceptor(session)])`. With a
    client, which opens a session for each chain:
    `client.tool_interceptors.append(ChainInterceptor(client))`. It must be the last interceptor,
    since it makes the calls itself. `chaining` has the options of `Follower`.
    """

    def __init__(self, server: Any, *, chaining: ChainOptions | None = None) -> None:
        self._server, self._chaining = server, chaining or {}
        check_policy(self._chaining.get("consent"))
        self._conversations: dict[str, Conversation] = defaultdict(Conversation)  # By server name.

    async def __call__(self, request: Any, handler: Any) -> CallToolResult:
        """Return one result of the call and its chain."""
        ended: list[ChainResult] = []
        options: ChainOptions = {
            "conversation": self._conversations[request.server_name],
            **self._chaining,
            "on_end": partial(self._note, ended),
        }
        try:
            async with self._caller(request) as caller:
                await Follower(caller, **options).call_tool(request.name, request.args)
        except Exception as error:
            if not ended:
                raise
            # When a session breaks, `mcp` 1.x cancels the task that opened it.
            if ended[0].outcome is Outcome.CANCELLED and not ended[0].follow_ups:
                raise error
        return CallToolResult.model_validate(on_the_wire(as_one(ended[0])))

    def _note(self, ended: list[ChainResult], chain: ChainResult) -> Awaitable[None] | None:
        ended.append(chain)
        return on_end(chain) if (on_end := self._chaining.get("on_end")) else None

    @asynccontextmanager
    async def _caller(self, request: Any) -> AsyncIterator[SessionCaller]:
        if not isinstance(self._server, MultiServerMCPClient):
            yield SessionCaller(self._server)
            return
        # `langchain-mcp-adapters` does the same for a single call: other interceptors set headers.
        connection = {**self._server.connections[request.server_name]}
        if request.headers and connection["transport"] not in ("stdio", "websocket"):
            connection["headers"] = {**(connection.get("headers") or {}), **request.headers}
        context = CallbackContext(server_name=request.server_name, tool_name=request.name)
        callbacks = self._server.callbacks.to_mcp_format(context=context)
        async with create_session(connection, mcp_callbacks=callbacks) as session:
            await session.initialize()
            yield SessionCaller(session, progress=callbacks.progress_callback)
