"""One user of the proxy, and the connection to the server behind it that is theirs alone."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp_types import INVALID_REQUEST

from banking_server.chaining import ToolCatalog
from banking_server.proxy.eras import Declared, Json, declared_by, for_upstream, is_modern
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.questions import Parked, Running
from banking_server.proxy.sdk import Connection, Context, connection_of
from banking_server.proxy.upstream import Upstream

logger = logging.getLogger(__name__)


class Link:
    """A user's own connection to the server behind, made when it is first needed.

    If the server ends, what runs fails once, and the next request connects again. `connection` is
    the client's own where it lasts longer than a request (2025-11-25), else None.
    """

    def __init__(
        self,
        options: ProxyOptions,
        declared: Declared,
        tasks: TaskGroup,
        *,
        connection: Connection | None = None,
    ) -> None:
        self.options = options
        self.declared = declared
        self.log_level: str | None = None
        """What a client of 2025-11-25 set for all its requests."""
        self._tasks = tasks
        self._connection = connection
        self._upstream: Upstream | None = None
        self._connecting = anyio.Lock()
        self._running: list[Running] = []
        self._parked: dict[str, Parked] = {}
        self._idle = anyio.Event()
        self.catalog = ToolCatalog(_Lister(self))

    @property
    def busy(self) -> bool:
        """Whether a request runs, or waits for its user."""
        return bool(self._running or self._parked)

    async def upstream(self) -> Upstream:
        """Return the connection, made anew if there is none. Raises MCPError, in one line."""
        async with self._connecting:
            if self._upstream is None or self._upstream.ended:
                self._upstream = Upstream(self.options.server, self.declared, self)
                self.catalog.changed()
                self._tasks.start_soon(self._upstream.run)
                await self._upstream.connected()
            return self._upstream

    async def notify(self, method: str, params: Json) -> None:
        """Pass on a notification of the client's, if there is a server that waits for it."""
        if self._upstream is None or self._upstream.ended:
            return
        if self._upstream.modern and method == "notifications/roots/list_changed":
            return
        await self._upstream.notify(method, params)

    async def retire(self) -> None:
        """Close when nothing runs any more."""
        while self.busy:
            await self._idle.wait()
        await self.close()

    async def close(self) -> None:
        """Give up what runs, and end the connection."""
        for parked in self._parked.values():
            parked.cancel()
        if self._upstream is not None:
            await self._upstream.close()

    # --- requests of the client -------------------------------------------------------------------

    async def request(self, running: Running, method: str, params: Json) -> Json:
        """Make a request for one of the client's, all its rounds included.

        `params` are as the client would send them. Raises MCPError.
        """
        upstream = await self.upstream()
        passed = for_upstream(params, modern=upstream.modern, log_level=self.log_level)
        with self._token(running, passed):
            result = await upstream.request(method, passed)
            while result.get("resultType") == "input_required" and upstream.modern:
                asked = result.get("inputRequests")
                answers = await running.ask_all(asked) if isinstance(asked, dict) else {}
                state = result.get("requestState")
                again = {**passed, "inputResponses": answers}
                again.pop("requestState", None)
                if state is not None:
                    again["requestState"] = state
                result = await upstream.request(method, again)
            return result

    @contextmanager
    def _token(self, running: Running, params: Json) -> Iterator[None]:
        """Let the server's progress on a request find its way, though others use the same token."""
        meta = params.get("_meta") or {}
        token = meta.get("progressToken")
        if token is None:
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
        """Know of a request of the client while it runs."""
        self._running.append(running)
        try:
            yield
        finally:
            self._running.remove(running)
            self._became_idle()

    def _became_idle(self) -> None:
        if not self.busy:
            self._idle.set()
            self._idle = anyio.Event()

    async def parked(self, parked: Parked, do: Callable[[], Awaitable[Json]]) -> Json:
        """Begin a request whose client can be asked between rounds, and return its first result."""

        async def work() -> None:
            try:
                await parked.work(do)
            finally:
                self._parked.pop(parked.key, None)
                self._became_idle()

        self._tasks.start_soon(work)
        return await self._round(parked)

    async def resumed(self, ctx: Context, state: Any, answers: Any) -> Json:
        """Go on with a request that waits for its user. Raises MCPError if there is none."""
        parked = self._parked.get(str(state).partition(".")[0])
        if parked is None:
            raise MCPError(
                code=INVALID_REQUEST,
                message="Nothing waits for this answer any more. Call again to be asked anew.",
            )
        parked.resume(ctx, str(state), answers)
        return await self._round(parked)

    async def _round(self, parked: Parked) -> Json:
        with self.running(parked):
            result = await parked.next_round()
        if parked.waits:
            self._parked[parked.key] = parked
        return result

    # --- what the server says by itself -----------------------------------------------------------

    async def asked(self, method: str, params: Json) -> Json:
        """Put a question of the server's to the user of the request that it belongs to.

        A server of 2025-11-25 does not say which one that is. With several under way, it is the
        one that began last of those that wait for nothing: they all have the same user.
        """
        if method == "ping":
            return {}
        open_to_it = [running for running in self._running if running.can_be_asked]
        open_to_it.sort(key=lambda running: (running.asking == 0, running.method == "tools/call"))
        if open_to_it:
            return await open_to_it[-1].ask(method, params)
        if self._connection is None:
            raise MCPError(
                code=INVALID_REQUEST, message="The client can be asked during a call only."
            )
        await self._connection.initialized.wait()
        return await self._connection.send_raw_request(method, params)

    async def told(self, method: str, params: Json) -> None:
        """Pass a notification on to where it belongs."""
        if method == "notifications/cancelled":
            return  # Of a question of the server's own, which has been withdrawn by now.
        if method == "notifications/tools/list_changed":
            self.catalog.changed()
        if method == "notifications/progress":
            token = params.get("progressToken")
            for running in self._running:
                if token is not None and running.upstream_token == token:
                    await running.progress(params)
            return
        if self._connection is not None:
            await self._connection.notify(method, params)


class _Lister:
    """The tools of the server behind, as the library's catalog reads them."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def call_tool(self, *_: Any, **__: Any) -> Json:
        raise NotImplementedError("a catalog calls no tools")

    async def list_tools(self, *, cursor: str | None) -> Json:
        upstream = await self._link.upstream()
        return await upstream.request("tools/list", {"cursor": cursor} if cursor else {})


class Links(Protocol):
    """Finds the link of whoever sent a message."""

    async def of(self, ctx: Context) -> Link:
        """Return the sender's link, made at `initialize` or with the first modern request.

        Raises MCPError if there can be none.
        """
        ...

    def principal(self, ctx: Context) -> str | None:
        """Return whoever a state is bound to; None where there is only one."""
        ...


class OneUser:
    """The links of a proxy that is spoken to over stdio: whoever speaks is the same user."""

    def __init__(self, options: ProxyOptions, tasks: TaskGroup) -> None:
        self._options = options
        self._tasks = tasks
        self._link: Link | None = None

    async def of(self, ctx: Context) -> Link:
        """Return the one link; a modern client that declares something else gets another."""
        link = self._link
        connection = connection_of(ctx)
        modern = is_modern(connection.protocol_version)
        if ctx.method == "initialize" or (modern and ctx.request_id is not None):
            declared = declared_by(ctx.method, ctx.params, connection.protocol_version)
            if link is None or link.declared != declared:
                self._link = Link(
                    self._options,
                    declared,
                    self._tasks,
                    connection=None if modern else connection,
                )
                if link is not None:
                    self._tasks.start_soon(link.retire)
        if self._link is None:
            raise MCPError(code=INVALID_REQUEST, message="Nobody has said hello yet.")
        return self._link

    def principal(self, _: Context) -> None:
        """Return None: nobody else can answer."""

    async def close(self) -> None:
        """End the connection to the server behind."""
        if self._link is not None:
            await self._link.close()
