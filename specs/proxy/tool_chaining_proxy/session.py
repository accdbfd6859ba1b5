"""One user of the proxy, and the user's own connection to the server behind it."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from tool_chaining import Conversation
from tool_chaining.content import member
from tool_chaining.negotiation import has_declared
from tool_chaining.record import MAX_RECALLED
from tool_chaining.tools import ToolList
from tool_chaining.values import same
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.exchange import Channel, ClientGone, Exchange, not_waiting
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.sdk import SUBSCRIPTION_ID_META_KEY
from tool_chaining_proxy.upstream import SessionForgotten, Upstream

POLL: Final = 0.2
"""Seconds until a request is sent again if the server has no question and no result yet."""

OF_A_REQUEST: Final = ("notifications/message", "notifications/elicitation/complete")
"""Notifications that a modern client gets only during a request of its own."""

ENDING: Final = "This proxy is ending."

ANSWERS: Final = "inputResponses"


class Session:
    """A user's own connection to the server behind the proxy, opened at the first request.

    If the server ends, the running requests fail, and the next request connects again.
    """

    def __init__(
        self,
        options: ProxyOptions,
        declared: Declared,
        tasks: TaskGroup,
        *,
        standing: Channel | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        """`declared` is the client's declaration with the first request.

        `standing` carries messages that belong to no request, if there is such a channel.
        `conversation` is the record of doubt, if it outlives this session (TC-C-55).
        """
        self.options = options
        self.declared = declared
        self.tasks = tasks
        self.name = token_hex(8)
        """Its name in a recording."""
        self.conversation = conversation or Conversation()
        self.tools = ToolList()
        """The server's tools that were read so far."""
        self.accepted = False
        """Whether the server has accepted this user once."""
        self._standing = Exchange({}, standing, declared, options) if standing else None
        self._upstream: Upstream | None = None
        self._closed = False
        self._connecting = anyio.Lock(fast_acquire=True)
        self.exchanges: list[Exchange] = []
        """The requests of the client that run, or wait for their user."""
        self._ended: deque[Exchange] = deque(maxlen=MAX_RECALLED)
        """The latest exchanges whose client may still say that it had cancelled them."""
        self._streams: dict[str, Exchange] = {}
        """The open `subscriptions/listen` of a client of 2026-07-28, by their names upstream."""
        self._opened = 0

    @property
    def in_use(self) -> bool:
        """Whether the client waits for the server, or the server for the client."""
        return bool(self.exchanges) or self._connecting.locked()

    @property
    def follows(self) -> bool:
        """Whether the connected server is followed (TC-C-03)."""
        server = self._upstream
        advertises = server is not None and has_declared(server.capabilities, server.revision)
        return self.options.follow_unadvertised or advertises

    async def upstream(self) -> Upstream:
        """Return the connection; connect if there is none. Raises MCPError with one line."""
        is_ready = not (self._closed or self._connecting.locked())
        if is_ready and self._upstream is not None and not self._upstream.ended:
            return self._upstream
        async with self._connecting:
            if self._closed:
                raise MCPError(code=CONNECTION_CLOSED, message=ENDING)
            if self._upstream is None or self._upstream.ended:
                upstream = self._upstream = Upstream(
                    self.options.server,
                    self.declared,
                    on_request=self._on_request,
                    on_notification=self._on_notification,
                    patience=self.options.start_timeout,
                )
                self.tasks.start_soon(upstream.run)
                try:
                    await upstream.connected()
                except BaseException:  # The client may have gone away.
                    upstream.end()
                    raise
                self.accepted = True
            return self._upstream

    async def close(self) -> None:
        """End the running requests and the connection. It is not opened again."""
        self._closed = True
        for exchange in [*self.exchanges]:
            if exchange.waits:
                exchange.cancel()
        self.give_up_asking("The client is gone and cannot be asked.")
        if self._upstream is not None:
            await self._upstream.close()

    def give_up_asking(self, words: str) -> None:
        """End every open question to the client."""
        for exchange in self.exchanges:
            exchange.give_up_asking(words)
        if self._standing is not None:
            self._standing.give_up_asking(words)

    # --- messages of the client -------------------------------------------------------------------

    @contextmanager
    def running(self, exchange: Exchange) -> Iterator[None]:
        """Keep a request of the client in the list while it runs."""
        exchange.siblings = self.exchanges
        self.exchanges.append(exchange)
        try:
            yield
        finally:
            self.exchanges.remove(exchange)
            if exchange.on_loss is not None:
                self._ended.append(exchange)
            if exchange.lost:
                self.cancel(exchange.id)

    def resumed(self, message: Json, channel: Channel) -> Exchange:
        """Continue the request that waits for its user. Raises MCPError if there is none."""
        key = str(member(message.get("params"), "requestState")).partition(".")[0]
        for exchange in self.exchanges:
            if exchange.key == key:
                exchange.resume(message, channel)
                return exchange
        raise not_waiting()

    def cancel(self, number: Any) -> None:
        """Cancel the request with this id, or note that its result came too late (TC-C-55)."""
        for exchange in self.exchanges:
            if same(exchange.id, number):
                exchange.lost = exchange.answered
                return None if exchange.lost else exchange.cancel()
        for exchange in [*self._ended]:
            if same(exchange.id, number) and exchange.on_loss is not None:
                self._ended.remove(exchange)
                exchange.on_loss()

    def take_answer(self, message: Json) -> None:
        """Hand the client's answer to the request during which it was asked."""
        asking = [*self.exchanges, *([self._standing] if self._standing else [])]
        any(exchange.take_answer(message) for exchange in asking)

    async def notify(self, method: str, params: Json | None) -> None:
        """Pass on a notification of the client, if the server is connected."""
        async with self._connecting:  # The client can send one before `initialize` is answered.
            upstream = self._upstream
        if upstream is not None and not upstream.ended:
            await upstream.notify(method, params)

    # --- requests to the server -------------------------------------------------------------------

    async def request(
        self, exchange: Exchange, method: str, params: Json, own: bool = True
    ) -> Json:
        """Make a request, with all its rounds; `params` have the client's form. Raises MCPError.

        A follow-up call, which is not the client's `own` request, is not sent again (TC-C-39).
        """
        exchange.rounds = 0
        upstream = await self.upstream()
        passed = {k: v for k, v in params.items() if k not in ("requestState", ANSWERS)}
        with self._token(exchange, passed):
            try:
                result = await upstream.request(method, passed, exchange.declared)
            except SessionForgotten:
                if not own:
                    raise
                upstream = await self.upstream()
                result = await upstream.request(method, passed, exchange.declared)
            while upstream.modern and result.get("resultType") == "input_required":
                exchange.rounds += 1
                asked, again = result.get("inputRequests"), dict(passed)
                if isinstance(asked, dict) and asked:
                    again[ANSWERS] = await exchange.ask_all(asked)
                elif asked:
                    words = "The server's questions cannot be read."
                    raise MCPError(code=INTERNAL_ERROR, message=words)
                else:
                    await anyio.sleep(POLL)
                if (state := result.get("requestState")) is not None:
                    again["requestState"] = state
                result = await upstream.request(method, again, exchange.declared)
            return result

    async def pass_on(self, exchange: Exchange) -> Json:
        """Answer a request of the client that is not `tools/call`. Raises MCPError."""
        method, params = exchange.method, exchange.params
        if exchange.declared.modern and method == "subscriptions/listen":
            return await self._listen(exchange)
        return await self.request(exchange, method, params)

    async def _listen(self, exchange: Exchange) -> Json:
        """Answer `subscriptions/listen`. It ends when the client or the server ends the stream."""
        upstream = await self.upstream()
        self._opened += 1
        name = f"listen-{self._opened}"
        self._streams[name] = exchange
        try:
            result = await upstream.request(
                exchange.method, exchange.params, exchange.declared, request_id=name
            )
        finally:
            del self._streams[name]
        return _renamed(result, exchange.id)

    @contextmanager
    def _token(self, exchange: Exchange, params: Json) -> Iterator[None]:
        """Give a request a progress token that no other running request has."""
        meta = params.get("_meta") or {}
        token = meta.get("progressToken")
        if not isinstance(token, str | int):
            yield
            return
        taken = {other.upstream_token for other in self.exchanges}
        exchange.upstream_token = token if token not in taken else f"{token}-{id(exchange):x}"
        params["_meta"] = {**meta, "progressToken": exchange.upstream_token}
        try:
            yield
        finally:
            exchange.upstream_token = None

    # --- requests and notifications of the server -------------------------------------------------

    async def _on_request(self, method: str, params: Json | None) -> Json:
        """Pass a question of a server of 2025-11-25 on with the request that it belongs to.

        The server does not say which request that is. The proxy takes the latest `tools/call` that
        asks nothing at the moment. All of them have the same user.
        """
        if method == "ping":
            return {}
        if self._standing is None or self.declared.modern:
            raise MCPError(
                code=INVALID_REQUEST, message="On 2026-07-28 a server asks only in a result."
            )
        exchange = self._standing
        if self.exchanges:
            quiet = [one for one in self.exchanges if not one.asking] or self.exchanges
            exchange = ([one for one in quiet if one.method == "tools/call"] or quiet)[-1]
        return await exchange.ask(method, params)

    async def _on_notification(self, method: str, params: Json | None) -> None:
        """Pass a notification of the server on, before any message that came after it."""
        if method == "notifications/tools/list_changed":
            self.tools.changed()
        with suppress(ClientGone):
            await self._route(method, params)

    async def _route(self, method: str, params: Json | None) -> None:
        members = params or {}
        if method == "notifications/progress":
            token = members.get("progressToken")
            for exchange in self.exchanges:
                if token is not None and exchange.upstream_token == token:
                    return await exchange.progress(members)
            return
        name = member(members.get("_meta"), SUBSCRIPTION_ID_META_KEY)
        if isinstance(name, str) and name in self._streams:
            stream = self._streams[name]
            return await stream.notify(method, _renamed(members, stream.id))
        # With a running request, if one may carry it.
        of_changes = method.endswith(("/list_changed", "/updated"))
        for exchange in reversed([] if of_changes else self.exchanges):
            if exchange.carries(method, members):
                return await exchange.notify(method, params)
        if self._standing and not (self.declared.modern and method in OF_A_REQUEST):
            await self._standing.notify(method, params)


def _renamed(message: Json, own_id: Any) -> Json:
    """Return a message of a stream of changes with the client's name for it."""
    meta = message.get("_meta")
    kept = meta if isinstance(meta, dict) else {}
    return {**message, "_meta": {**kept, SUBSCRIPTION_ID_META_KEY: own_id}}
