"""The proxy holds the three laws of the record of doubt (TC-C-55, TC-C-57) for its clients.

The machine is that of `tests/chaining/test_never_twice.py`. Here its hosts are clients of the proxy
that send messages and know nothing of chains, and its server is scripted behind the proxy. In the
older revision a question is a request to the client, in the newer one an interim result.
"""

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from mcp import MCPError

from tool_chaining import CallRefused, Outcome
from tool_chaining_proxy import chain as chain_room
from tool_chaining_proxy import session as session_room
from tool_chaining_proxy.eras import Declared
from tool_chaining_proxy.exchange import Channel, ClientGone, Exchange
from tool_chaining_proxy.options import Command, ProxyOptions
from tool_chaining_proxy.session import Session

from ..chaining import test_never_twice as traces
from ..chaining import world as people
from ..chaining.test_never_twice import Machine, Story
from ..chaining.world import PREPARE, TOTAL, Call, Chain, Server, World
from .wire import CHAINING, JSON, NEW, OLD

pytestmark = pytest.mark.quick

ASKS = {"elicitation": {"form": {}}}
OWNER: ContextVar[Chain] = ContextVar("owner")
"""Whose chain the current task runs."""


class ProxyWorld(World):
    """Hosts in front of the proxy, and a server behind it."""

    def __init__(self, *, revision: str, **members: bool) -> None:
        super().__init__(**members)
        self.modern = revision == NEW
        self.ready = asyncio.Event()
        self.over = asyncio.Event()
        self.exchanges: dict[Chain, Exchange] = {}
        self.options = ProxyOptions(
            Command(("scripted",), {}),
            lambda ask: Person(self, ask),
            call_timeout=TOTAL,
            time_limit=TOTAL,
        )
        self.declared = Declared(revision, ASKS, None)
        self.main = self.loop.create_task(self.run())
        self.loop.settle()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            self.session = Session(
                self.options,
                self.declared,
                tasks,
                standing=Window(self, None),
                conversation=self.conversation,
            )
            await self.over.wait()
            tasks.cancel_scope.cancel()

    def begin(self, first: Call = PREPARE, *, consents: bool = True, writes: bool = True) -> Chain:
        chain = Chain(first, self.event(), not writes)
        chain.consents = consents  # type: ignore[attr-defined]
        self.chains.append(chain)
        chain.task = self.loop.create_task(self.serve(chain))
        self.loop.settle()
        return chain

    def request(self, chain: Chain, **more: Any) -> JSON:
        params = {"name": chain.first[0], "arguments": {"n": chain.first[1]}, "_meta": {}, **more}
        number = self.chains.index(chain)
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    async def serve(self, chain: Chain) -> None:
        OWNER.set(chain)
        channel = Window(self, chain)
        exchange = Exchange(self.request(chain), channel, self.declared, self.options)
        self.exchanges[chain] = exchange
        try:
            with self.session.running(exchange):
                await exchange.run(lambda: chain_room._answer(self.session, exchange))
        finally:
            self.end(chain, getattr(chain, "outcome", Outcome.CANCELLED))

    def cancel(self, chain: Chain) -> None:
        if chain.task.done():
            return super().cancel(chain)
        return self.cancel_late(chain)

    def cancel_late(self, chain: Chain) -> None:
        self.loop.call_soon(self.session.cancel, self.chains.index(chain))
        self.loop.settle()

    def ask(self, chain: Chain) -> None:
        if self.modern:
            super().ask(chain)
            if chain.question is not None:
                question = chain.question
                question.add_done_callback(lambda _: self.come_back(chain, {"one": {}}))

    def close(self) -> None:
        self.over.set()
        super().close()

    # --- what a client does with what it gets

    def dialog(self, chain: Chain, answer: Any) -> None:
        """Show the user a question of the proxy; `answer` takes what the user says."""
        dialog = chain.dialog = self.loop.create_future()

        def answered(_: Any) -> None:
            if chain.dialog is dialog:
                chain.dialog = None
                answer({"action": "accept" if dialog.result() else "decline"})

        dialog.add_done_callback(answered)

    def come_back(self, chain: Chain, responses: JSON) -> None:
        chain.question = None
        state = {"requestState": self.states[chain], "inputResponses": responses}
        message = self.request(chain, **state)
        self.session.resumed(message, Window(self, chain))
        with pytest.raises(MCPError):  # A second answer starts no call.
            self.session.resumed(message, Window(self, chain))

    @property
    def states(self) -> dict[Chain, str]:
        return self.__dict__.setdefault("_states", {})


class Window(Channel):
    """What a host gets, for one of its requests."""

    def __init__(self, world: ProxyWorld, chain: Chain | None) -> None:
        self.world, self.chain = world, chain

    async def send(self, message: JSON) -> None:
        if message["method"] == "notifications/cancelled":
            for chain in self.world.chains:
                if message["params"]["requestId"] == getattr(chain, "asked", None):
                    chain.dialog = None
            return
        assert self.chain is not None
        number = self.chain.asked = message["id"]  # type: ignore[attr-defined]

        def answer(result: JSON) -> None:
            self.world.session.take_answer({"jsonrpc": "2.0", "id": number, "result": result})

        self.world.dialog(self.chain, answer)

    async def answer(self, outcome: Any) -> None:
        chain, world = self.chain, self.world
        assert chain is not None
        if isinstance(outcome, dict) and outcome.get("resultType") == "input_required":
            world.states[chain] = outcome["requestState"]
            if chain.question is None:
                [name] = outcome["inputRequests"]
                world.dialog(chain, lambda result: world.come_back(chain, {name: result}))
            return
        if chain.fails_to_write:
            raise ClientGone
        told = {"outcome": Outcome.FAILED}
        if isinstance(outcome, dict):
            told = outcome.get("_meta", {}).get(CHAINING, {"outcome": Outcome.COMPLETED})
            task = outcome.get("resultType") == "task" or "task" in outcome
            told = {"outcome": Outcome.FAILED} if task else told
        chain.outcome = told["outcome"]  # type: ignore[attr-defined]


class Person(people.Person):
    """The user, whom the proxy asks through the client."""

    def __init__(self, world: ProxyWorld, ask: Any) -> None:
        chain = OWNER.get()
        super().__init__(world, chain, chain.consents)  # type: ignore[attr-defined]
        self.ask = ask

    async def answer(self) -> bool:
        try:
            answer = await self.ask("elicitation/create", {"message": "?", "requestedSchema": {}})
        except MCPError:
            return False
        return bool(answer["action"] == "accept")


class Upstream:
    """The server behind the proxy, for the chain of the current task."""

    ended = False
    capabilities = Server.server_capabilities

    def __init__(self, _: Any, declared: Declared, **__: Any) -> None:
        self.revision, self.modern = declared.revision, declared.modern
        if not self.modern:
            self.capabilities = {"experimental": self.capabilities["extensions"]}

    async def run(self) -> None: ...

    async def connected(self) -> None: ...

    async def request(self, method: str, params: JSON, *_: Any, **__: Any) -> Any:
        chain = OWNER.get()
        server = Server(WORLD[0], chain)
        if method == "tools/list":
            return await server.list_tools(cursor=None, cache_mode="refresh")
        if "inputResponses" not in params:
            server.receive(params["name"], params["arguments"])
        assert chain.call is not None
        queue, sent = chain.call, None
        try:
            sent = await queue.get()
        finally:
            if not isinstance(sent, asyncio.Future):
                chain.call = None
        if isinstance(sent, asyncio.Future):
            form = {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}}
            return {"resultType": "input_required", "inputRequests": {"one": form}}
        if isinstance(sent, ConnectionError):
            raise MCPError(code=-32000, message="gone")
        if isinstance(sent, MCPError) and sent.code == -32021 and not self.modern:
            raise CallRefused("401")
        if isinstance(sent, Exception):
            raise sent
        if sent.get("resultType") == "task" and not self.modern:
            return {"task": {"taskId": "1"}}
        return sent


WORLD: list[ProxyWorld] = []


@pytest.fixture(params=[OLD, NEW])
def revision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(session_room, "Upstream", Upstream)
    return str(request.param)


def test_the_proxy_holds_the_three_laws(revision: str, nightly: bool) -> None:
    class Proxied(Machine):
        @initialize(shared=st.booleans(), idempotent=st.booleans())
        def start(self, shared: bool, idempotent: bool) -> None:
            world = ProxyWorld(revision=revision, shared=shared, idempotent=idempotent)
            WORLD[:] = [world]
            self.world = world

    examples = 150 if nightly else 20
    run_state_machine_as_test(
        Proxied,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=not nightly,
        ),
    )


# --- what the client suite cannot ask of a proxy -------------------------------------------------


class ProxyStory(ProxyWorld, Story):
    """A world behind the proxy in which chains go their way in one line."""


@pytest.fixture
def story(revision: str) -> Iterator[ProxyStory]:
    story = ProxyStory(revision=revision)
    WORLD[:] = [story]
    yield story
    story.close()
    assert story.broken == []


@pytest.mark.parametrize(("after", "doubts"), [(59.0, True), (61.0, False)])
def test_a_cancellation_after_the_result_is_heard(
    after: float, doubts: bool, story: ProxyStory
) -> None:
    traces.test_a_cancellation_soon_after_the_result_brings_the_doubt_back(story, after, doubts)


def test_a_question_that_is_handed_out_gives_up_the_turn(story: ProxyStory) -> None:
    """Nobody knows whether the client comes back. A question that is a request is answered."""
    first, second = traces.again(story), traces.again(story)
    if story.modern:
        story.ask(first)
    assert traces.asks(second) is story.modern
