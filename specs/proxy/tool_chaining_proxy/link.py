"""One user of the proxy, and the user's own connection to the server behind it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from tool_chaining import Conversation
from tool_chaining.negotiation import has_declared
from tool_chaining.tools import ToolList
from tool_chaining_proxy.changes import Changes
from tool_chaining_proxy.eras import Declared, Json, declared_by
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.questions import Parked, Running, not_waiting
from tool_chaining_proxy.sdk import Connection, Context, connection_of
from tool_chaining_proxy.upstream import SessionForgotten, Upstream

POLL: Final = 0.2
"""Seconds until a request is sent again if the server has no question and no result yet."""

OF_A_REQUEST: Final = ("notifications/message", "notifications/elicitation/complete")
"""Notifications that a modern client gets only during a request of its own."""

ENDING: Final = "This proxy is ending."

ANSWERS: Final = "inputResponses"


class Link:
    """A user's own connection to the server behind the proxy, opened at the first request.

    If the server ends, the running requests fail, and the next request connects again. `connection`
    is that of the client if it lasts longer than a request (2025-11-25, and stdio), otherwise None.
    """

    def __init__(
        self,
        options: ProxyOptions,
        declared: Declared,
        tasks: TaskGroup,
        *,
        connection: Connection | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        """`declared` is the client's declaration with the first request.

        `conversation` is the record of doubt, if it outlives this link (TC-C-55).
        """
        self.options = options
        self.declared = declared
        self.conversation = conversation or Conversation()
        self.tools = ToolList()
        """The server's tools that were read so far."""
        self._tasks = tasks
        self._connection = connection
        self._upstream: Upstream | None = None
        self._closed = False
        self._connecting = anyio.Lock(fast_acquire=True)
        self._running: list[Running] = []
        self._parked: dict[str, Parked] = {}
        self._standing: dict[tuple[str, str], Json] = {}
        """The log level and the subscriptions of a client of 2025-11-25, for a new connection."""
        self._changes = Changes()

    @property
    def in_use(self) -> bool:
        """Whether the client waits for the server, or the server for the client."""
        return bool(self._running) or self._connecting.locked()

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
                self._tasks.start_soon(upstream.run)
                try:
                    await upstream.connected()
                except BaseException:  # The client may have gone away.
                    upstream.end()
                    raise
                with anyio.move_on_after(self.options.start_timeout):
                    for (method, _), params in self._standing.items():
                        with suppress(MCPError):
                            await upstream.request(method, params, self.declared)
            return self._upstream

    async def notify(self, method: str, params: Json) -> None:
        """Pass on a notification of the client, if the server is connected."""
        if self._upstream is not None and not self._upstream.ended:
            await self._upstream.notify(method, params)

    async def close(self) -> None:
        """End the running requests and the connection. It is not opened again."""
        self._closed = True
        for parked in [*self._parked.values()]:
            parked.cancel()
        for running in self._running:
            running.give_up_asking()
        if self._upstream is not None:
            await self._upstream.close()

    # --- requests of the client -------------------------------------------------------------------

    async def request(self, running: Running, method: str, params: Json, own: bool = True) -> Json:
        """Make a request, with all its rounds; `params` have the client's form. Raises MCPError.

        A follow-up call, which is not the client's `own` request, is not sent again (TC-C-39).
        """
        running.rounds = 0
        upstream = await self.upstream()
        passed = dict(params)
        with self._token(running, passed):
            try:
                result = await upstream.request(method, passed, running.declared)
            except SessionForgotten:
                if not own:
                    raise
                upstream = await self.upstream()
                result = await upstream.request(method, passed, running.declared)
            while upstream.modern and result.get("resultType") == "input_required":
                running.rounds += 1
                asked = result.get("inputRequests")
                again = {k: v for k, v in passed.items() if k not in ("requestState", ANSWERS)}
                if isinstance(asked, dict) and asked:
                    again[ANSWERS] = await running.ask_all(asked)
                elif asked:
                    words = "The server's questions cannot be read."
                    raise MCPError(code=INTERNAL_ERROR, message=words)
                else:
                    await anyio.sleep(POLL)
                if (state := result.get("requestState")) is not None:
                    again["requestState"] = state
                result = await upstream.request(method, again, running.declared)
            return result

    async def answer(self, running: Running, method: str, params: Json) -> Json:
        """Answer a request of the client that is not `tools/call`. Raises MCPError."""
        if running.declared.modern:
            if method == "subscriptions/listen":
                return await self._changes.listen(await self.upstream(), running, params)
            return await self.request(running, method, params)
        result = await self.request(running, method, params)
        uri = str(params.get("uri"))
        if method in ("logging/setLevel", "resources/subscribe"):
            self._standing[method, uri] = params
        elif method == "resources/unsubscribe":
            self._standing.pop(("resources/subscribe", uri), None)
        return result

    @contextmanager
    def _token(self, running: Running, params: Json) -> Iterator[None]:
        """Give a request a progress token that no other running request has."""
        meta = params.get("_meta") or {}
        token = meta.get("progressToken")
        if not isinstance(token, str | int):
            yield
            return
        taken = {other.upstream_token for other in self._running}
        running.upstream_token = token if token not in taken else f"{token}-{id(running):x}"
        params["_meta"] = {**meta, "progressToken": running.upstream_token}
        try:
            yield
        finally:
            running.upstream_token = None

    @contextmanager
    def running(self, running: Running) -> Iterator[None]:
        """Keep a request of the client in the list while it runs."""
        self._running.append(running)
        try:
            yield
        finally:
            self._running.remove(running)

    def park(self, parked: Parked, do: Callable[[], Awaitable[Json]]) -> None:
        """Begin a request that can ask its client between rounds."""

        async def work() -> None:
            try:
                with self.running(parked):
                    await parked.work(do)
            finally:
                self._parked.pop(parked.key, None)

        self._tasks.start_soon(work)

    def resumed(self, ctx: Context, state: Any, answers: Any) -> Parked:
        """Continue a request that waits for its user. Raises MCPError if there is none."""
        parked = self._parked.get(str(state).partition(".")[0])
        if parked is None:
            raise not_waiting()
        parked.resume(ctx, str(state), answers)
        return parked

    async def round(self, parked: Parked) -> Json:
        """Return the next result of a parked request. Raises MCPError."""
        result = await parked.next_round()
        if not parked.collected:
            waiting = len(self._parked)
            if waiting >= self.options.max_parked and parked.key not in self._parked:
                parked.cancel()
                raise MCPError(
                    code=INTERNAL_ERROR,
                    message=f"{waiting} calls already wait for their user. Answer one of them "
                    "first.",
                )
            self._parked[parked.key] = parked
        return result

    # --- requests and notifications of the server -------------------------------------------------

    async def _on_request(self, method: str, params: Json) -> Json:
        """Pass a question of a server of 2025-11-25 on with the request that it belongs to.

        The server does not say which request that is. The proxy takes the latest `tools/call` that
        asks nothing at the moment. All of them have the same user.
        """
        if method == "ping":
            return {}
        if self._connection is None or self.declared.modern:
            raise MCPError(
                code=INVALID_REQUEST, message="On 2026-07-28 a server asks only in a result."
            )
        if self._running:
            quiet = [one for one in self._running if not one.asking] or self._running
            calls = [one for one in quiet if one.method == "tools/call"] or quiet
            return await calls[-1].ask(method, params)
        await self._connection.initialized.wait()
        return await self._connection.send_raw_request(method, params)

    async def _on_notification(self, method: str, params: Json | None) -> None:
        """Pass a notification of the server on."""
        members = params or {}
        if method == "notifications/cancelled":
            return  # The server cancelled its own question; the dispatcher has withdrawn it.
        if method == "notifications/progress":
            token = members.get("progressToken")
            for running in [*self._running]:
                if token is not None and running.upstream_token == token:
                    return await running.progress(members)
            return
        if await self._changes.pass_on(method, members):
            return
        # With a running request, if one may carry it.
        of_changes = method.endswith(("/list_changed", "/updated"))
        for running in reversed([] if of_changes else self._running):
            if running.carries(method, members):
                return await running.notify(method, params)
        if self._connection is not None and not (self.declared.modern and method in OF_A_REQUEST):
            await self._connection.notify(method, params)


class OneUser:
    """The link of a proxy over stdio: all messages are of the same user.

    The record of doubt is kept as long as the process runs.
    """

    def __init__(self, options: ProxyOptions, tasks: TaskGroup) -> None:
        self._options = options
        self._tasks = tasks
        self._link: Link | None = None
        self._conversation = Conversation()

    async def of(self, ctx: Context) -> Link:
        """Return the sender's link. An `initialize` makes a new one."""
        connection = connection_of(ctx)
        if self._link is None or ctx.method == "initialize":
            if self._link is not None:
                self._tasks.start_soon(self._link.close)
            declared = declared_by(ctx.method, ctx.params, connection.protocol_version)
            self._link = Link(
                self._options,
                declared,
                self._tasks,
                connection=connection,
                conversation=self._conversation,
            )
        return self._link

    async def close(self) -> None:
        """End the connection to the server behind the proxy."""
        if self._link is not None:
            await self._link.close()
