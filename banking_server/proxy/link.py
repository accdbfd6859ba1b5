"""One user of the proxy, and the connection to the server behind it that is theirs alone."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from banking_server.chaining.doubt import CallsInDoubt
from banking_server.proxy.changes import Changes
from banking_server.proxy.eras import Declared, Json, declared_by, for_upstream, is_modern
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.questions import NotAnswered, Parked, Running, not_asked_any_more
from banking_server.proxy.sdk import Connection, Context, connection_of
from banking_server.proxy.upstream import SessionForgotten, Upstream

MAX_ROUNDS: Final = 100
"""How often a server may ask in the course of one request."""

POLL: Final = 0.2
"""Seconds after which a server is asked again that has no question and no result yet."""

PATIENCE: Final = 10.0
"""Seconds in which a new connection takes up what the last one was told."""

OF_A_REQUEST: Final = ("notifications/message", "notifications/elicitation/complete")
"""What a modern client hears with a request of its own, if at all."""

KEPT: Final = 4
"""Links that are kept for one modern client over stdio."""

FURTHER: Final = 7
"""Connections that a user has at most besides the first one, for calls that run side by side."""

ENDING: Final = "This proxy is ending."

ANSWERS: Final = "inputResponses"


class Link:
    """A user's own connection to the server behind, made when it is first needed.

    If the server ends, what runs fails once, and the next request connects again. `connection` is
    the client's own where it lasts longer than a request (2025-11-25, and stdio), else None.

    A server of 2025-11-25 does not say which call its question belongs to, and a client of
    2026-07-28 is asked in the result of that very call. So a call during which such a client can be
    asked has a connection to itself: the first one if that is free, else a further one, a link
    `beside` this. The price: a server that keeps something in a connection (or, over stdio, in its
    process) knows there what calls on that connection did. It is paid by calls that run side by
    side only, and only where the client declared that it can be asked.
    """

    def __init__(
        self,
        options: ProxyOptions,
        declared: Declared,
        tasks: TaskGroup,
        *,
        connection: Connection | None = None,
        beside: "Link | None" = None,
        in_doubt: CallsInDoubt | None = None,
    ) -> None:
        self.options = options
        self.declared = declared
        self.log_level: str | None = None
        """What a client of 2025-11-25 set for all its requests."""
        self._tasks = tasks
        self._connection = connection
        self._upstream: Upstream | None = None
        self._closed = False
        self._connecting = anyio.Lock()
        self._running: list[Running] = []
        self._parked: dict[str, Parked] = {}
        self._at_work = 0
        """How many requests are under way whose client may be asked between rounds."""
        self._news = anyio.Event()
        """Something has ended, or waits for its user."""
        self._level_set: str | None = None
        self._further: list[Link] = []
        self._first: Link = beside or self
        self.in_doubt = CallsInDoubt() if in_doubt is None else in_doubt
        """The user's calls whose effect is unknown; all links of one user share it."""
        self._changes: Changes = beside._changes if beside else Changes(tasks, self._tell)

    @property
    def busy(self) -> bool:
        """Whether a request runs, or waits for its user."""
        return bool(self._running or self._at_work)

    @property
    def in_use(self) -> bool:
        """Whether somebody waits for the server, or the server for somebody."""
        return self.busy or self._connecting.locked()

    async def upstream(self) -> Upstream:
        """Return the connection, made anew if there is none. Raises MCPError, in one line."""
        async with self._connecting:
            if self._closed:
                raise MCPError(code=CONNECTION_CLOSED, message=ENDING)
            if self._upstream is None or self._upstream.ended:
                upstream = Upstream(
                    self.options.server,
                    self.declared,
                    self,
                    patience=self.options.start_timeout,
                )
                self._upstream, self._level_set = upstream, None
                self._tasks.start_soon(upstream.run)
                try:
                    await upstream.connected()
                except BaseException:  # Whoever needed it may have gone away.
                    upstream.end()
                    raise
                if not self.declared.modern:
                    with anyio.move_on_after(PATIENCE):
                        await self._changes.begin(upstream)
                        if self.log_level is not None:
                            await self._set_level(upstream, self.log_level)
            return self._upstream

    async def notify(self, method: str, params: Json) -> None:
        """Pass on a notification of the client's, if there is a server that waits for it."""
        if self._upstream is None or self._upstream.ended:
            return
        either_modern = self._upstream.modern or self.declared.modern
        if either_modern and method == "notifications/roots/list_changed":
            return
        await self._upstream.notify(method, params)

    async def retire(self) -> None:
        """Close when nothing runs any more."""
        while self.busy:
            await self._news.wait()
        await self.close()

    async def close(self) -> None:
        """Give up what runs, and end the connection for good."""
        self._closed = True
        for parked in [*self._parked.values()]:
            parked.cancel()
        for running in self._running:
            running.give_up_asking()
        async with anyio.create_task_group() as tasks:
            for link in self._further:
                tasks.start_soon(link.close)
            if self._upstream is not None:
                await self._upstream.close()

    # --- requests of the client -------------------------------------------------------------------

    async def request(
        self, upstream: Upstream, running: Running, method: str, params: Json
    ) -> Json:
        """Make a request for one of the client's, all its rounds included.

        `params` are as the client would send them. Raises MCPError.
        """
        if upstream.forgotten:
            upstream = await self.upstream()
        modern, logs = upstream.modern, "logging" in upstream.capabilities
        passed = for_upstream(params, modern=modern)
        if running.wanted_level is not None and logs and not modern:
            await self._set_level(upstream, running.wanted_level)
        with self._token(running, passed):
            try:
                result = await upstream.request(method, passed)
            except SessionForgotten:
                # Nothing was done, so nothing is done twice.
                upstream = await self.upstream()
                result = await upstream.request(method, passed)
            for _ in range(MAX_ROUNDS):
                if result.get("resultType") != "input_required" or not modern:
                    return result
                asked = result.get("inputRequests")
                again = {k: v for k, v in passed.items() if k not in ("requestState", ANSWERS)}
                if isinstance(asked, dict) and asked:
                    try:
                        again[ANSWERS] = await running.ask_all(asked)
                    except MCPError as error:
                        raise NotAnswered.from_error_data(error.error) from None
                else:
                    await anyio.sleep(POLL)
                if (state := result.get("requestState")) is not None:
                    again["requestState"] = state
                result = await upstream.request(method, again)
        raise MCPError(
            code=INTERNAL_ERROR, message=f"The server asked more than {MAX_ROUNDS} times."
        )

    async def answer(self, running: Running, method: str, params: Json) -> Json:
        """Answer a request of the client's that is no call. Raises MCPError."""
        upstream = await self.upstream()
        if method == "subscriptions/listen" and self.declared.modern:
            return await self._changes.listen(upstream, running, params)
        if not self.declared.modern:
            if method in ("resources/subscribe", "resources/unsubscribe"):
                return await self._changes.subscribe(upstream, method, params)
            if method == "logging/setLevel":
                result = await upstream.request(method, params)
                self.log_level = str(params.get("level"))
                return result
        return await self.request(upstream, running, method, params)

    async def _set_level(self, upstream: Upstream, level: str) -> None:
        """Let a server of 2025-11-25 log what a modern client asks for in one of its requests."""
        if level != self._level_set:
            self._level_set = level
            with suppress(MCPError):
                await upstream.request("logging/setLevel", {"level": level})

    @contextmanager
    def _token(self, running: Running, params: Json) -> Iterator[None]:
        """Let the server's progress on a request find its way, though others use the same token."""
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
        """Know of a request of the client while it runs."""
        self._running.append(running)
        try:
            yield
        finally:
            self._running.remove(running)
            self._first._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    @asynccontextmanager
    async def _where_it_runs(self, parked: Parked) -> AsyncIterator["Link"]:
        """Know of a request while it runs, by itself if its question could be taken for another's.

        Raises MCPError if there are too many of those.
        """
        alone = parked.answers_questions and not (await self.upstream()).modern
        link = await self._free() if alone else self
        with link.running(parked):
            yield link

    async def _free(self) -> "Link":
        """Return a link on which no request runs whose client can be asked."""
        while True:
            links = [self, *self._further]
            taken = [[one for one in link._running if one.can_be_asked] for link in links]
            for link, requests in zip(links, taken, strict=True):
                if not requests:
                    return link
            if len(self._further) < FURTHER:
                link = Link(
                    self.options,
                    self.declared,
                    self._tasks,
                    connection=self._connection,
                    beside=self,
                    in_doubt=self.in_doubt,
                )
                self._further.append(link)
                return link
            if all(one.asking for requests in taken for one in requests):
                raise _waits(len(links))
            await self._news.wait()

    async def parked(self, parked: Parked, do: Callable[["Link"], Awaitable[Json]]) -> Json:
        """Begin a request whose client can be asked between rounds, and return its first result."""

        async def run() -> Json:
            async with self._where_it_runs(parked) as link:
                return await do(link)

        async def work() -> None:
            self._at_work += 1
            try:
                await parked.work(run)
            finally:
                self._at_work -= 1
                self._parked.pop(parked.key, None)
                self._wake()

        self._tasks.start_soon(work)
        return await self._round(parked)

    async def resumed(self, ctx: Context, state: Any, answers: Any) -> Json:
        """Go on with a request that waits for its user. Raises MCPError if there is none."""
        parked = self._parked.get(_key(state))
        if parked is None:
            raise not_asked_any_more()
        parked.resume(ctx, str(state), answers)
        return await self._round(parked)

    def holds(self, state: Any) -> bool:
        """Return whether the call of a state waits here."""
        return _key(state) in self._parked

    async def _round(self, parked: Parked) -> Json:
        result = await parked.next_round()
        if not parked.collected:
            if len(self._parked) >= self.options.max_parked and parked.key not in self._parked:
                parked.cancel()
                raise _waits(len(self._parked))
            self._parked[parked.key] = parked
            self._wake()
        return result

    # --- what the server says by itself -----------------------------------------------------------

    async def asked(self, method: str, params: Json) -> Json:
        """Put a question of the server's to the user of the request that it belongs to.

        A server of 2025-11-25 does not say which one that is. A modern client's has the connection
        to itself. Of several of a client of 2025-11-25, who is asked outside any of them, it is
        the one that began last of those that wait for nothing: they all have the same user.
        """
        if method == "ping":
            return {}
        open_to_it = [running for running in self._running if running.can_be_asked]
        open_to_it.sort(key=lambda running: (running.asking == 0, running.method == "tools/call"))
        if open_to_it:
            return await open_to_it[-1].ask(method, params)
        if self._connection is None or self.declared.modern:
            raise MCPError(
                code=INVALID_REQUEST, message="The client can be asked during a call only."
            )
        await self._connection.initialized.wait()
        return await self._connection.send_raw_request(method, params)

    async def told(self, method: str, params: Json) -> None:
        """Pass a notification on to where it belongs."""
        if method == "notifications/cancelled":
            return  # Of a question of the server's own, which has been withdrawn by now.
        if method == "notifications/progress":
            token = params.get("progressToken")
            for running in self._running:
                if token is not None and running.upstream_token == token:
                    await running.progress(params)
        elif not await self._changes.told(method, params):
            await self._tell(method, params)

    async def _tell(self, method: str, params: Json) -> None:
        """Tell the client, by a request that runs if there is one that may carry it."""
        of_changes = method.endswith(("/list_changed", "/updated"))
        for running in reversed([] if of_changes else self._running):
            if running.carries(method, params):
                await running.notify(method, params)
                return
        if self._connection is not None and not (self.declared.modern and method in OF_A_REQUEST):
            await self._connection.notify(method, params)

    async def list_tools(self, *, cursor: str | None) -> Json:
        """Return a page of the tools of the server behind, as the library reads them."""
        upstream = await self.upstream()
        return await upstream.request("tools/list", {"cursor": cursor} if cursor else {})


def _waits(calls: int) -> MCPError:
    return MCPError(
        code=INTERNAL_ERROR,
        message=f"{calls} calls wait for their user already. Answer one of them first.",
    )


def _key(state: Any) -> str:
    return str(state).partition(".")[0]


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
    """The links of a proxy that is spoken to over stdio: whoever speaks is the same user.

    A modern client may declare something else in each request. It then gets another link, since
    the server behind was told what the client can do; the last few are kept.
    """

    def __init__(self, options: ProxyOptions, tasks: TaskGroup) -> None:
        self._options = options
        self._tasks = tasks
        self._links: list[Link] = []
        self._in_doubt = CallsInDoubt()

    async def of(self, ctx: Context) -> Link:
        """Return the sender's link."""
        connection = connection_of(ctx)
        modern = is_modern(connection.protocol_version)
        if ctx.method == "initialize" or (modern and ctx.request_id is not None):
            declared = declared_by(ctx.method, ctx.params, connection.protocol_version)
            state = (ctx.params or {}).get("requestState")
            known = (one for one in self._links if one.declared == declared or one.holds(state))
            link = next(known, None)
            if link is None:
                link = Link(
                    self._options,
                    declared,
                    self._tasks,
                    connection=connection,
                    in_doubt=self._in_doubt,
                )
                if len(self._links) >= KEPT:
                    self._tasks.start_soon(self._links.pop(0).retire)
            else:
                self._links.remove(link)
            self._links.append(link)
        if not self._links:
            raise MCPError(code=INVALID_REQUEST, message="Nobody has said hello yet.")
        return self._links[-1]

    def principal(self, _: Context) -> None:
        """Return None: nobody else can answer."""

    async def close(self) -> None:
        """End the connections to the server behind."""
        async with anyio.create_task_group() as tasks:
            for link in self._links:
                tasks.start_soon(link.close)
