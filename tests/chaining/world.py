"""A host's chains beside a server and people who do anything, in a time that a test sets.

`World` plays the server and the people behind real followers of one conversation. It judges by a
`Ledger` of its own.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError

from tool_chaining import (
    IDENTIFIER,
    ChainResult,
    ConsentPolicy,
    Conversation,
    Follower,
    Outcome,
    Proposal,
)
from tool_chaining.client import waiting_for_user

HOUR = 3600.0
TOTAL, ROUND, RECALL = 300.0, 600.0, 60.0
PREPARE, OTHER = ("prepare", 1), ("prepare", 2)
CALLS = [("pay", 1), ("pay", 2), ("pay", 3), ("audit", 1), ("look", 1)]
TOOLS = {
    "prepare": {},
    "pay": {"idempotentHint": True},
    "audit": {},
    "look": {"readOnlyHint": True},
}

Call = tuple[str, int]


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still until somebody moves it."""

    now = 0.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        return self.now

    def settle(self) -> None:
        """Run whatever can run at this moment."""
        while self._ready or (self._scheduled and self._scheduled[0].when() <= self.now):
            self.call_soon(self.stop)
            self.run_forever()

    def advance(self, seconds: float, step: float = 30.0) -> None:
        while seconds > 0:
            self.now += min(step, seconds)
            seconds -= step
            self.settle()


@dataclass(eq=False, repr=False)  # A chain and its calls know each other.
class Sent:
    """A call that reached the server."""

    chain: "Chain"
    call: Call
    asked: bool
    at: int
    brought: str = "running"
    lost: float = float("inf")
    """When it ended unanswered."""


@dataclass(eq=False, repr=False)  # A chain and its calls know each other.
class Chain:
    """A chain that a host began, as everybody but the host sees it."""

    first: Call
    began: int
    fails_to_write: bool
    task: Any = None
    call: asyncio.Queue[Any] | None = None
    """What the server sends for the running call."""
    dialog: asyncio.Future[bool] | None = None
    question: asyncio.Future[None] | None = None
    """A question of the server that was handed out and has no answer."""
    agreed: bool = False
    last: Sent | None = None
    result: ChainResult | None = None
    ended: float = float("inf")
    ended_at: float = float("inf")
    well: bool = False
    ended_well_once: bool = False
    sent: list[Sent] = field(default_factory=list)


class Ledger:
    """What reached the server, and what everybody sees of each chain.

    It judges by that what is in doubt, and knows nothing of the entries in the record.
    """

    def __init__(self, *, shared: bool, idempotent: bool) -> None:
        self.shared, self.idempotent = shared, idempotent
        self.chains: list[Chain] = []
        self.ledger: list[Sent] = []
        self.events = 0
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def event(self) -> int:
        self.events += 1
        return self.events

    def note_sent(self, chain: Chain, call: Call, *, asked: bool) -> None:
        chain.last = Sent(chain, call, asked, self.event())
        chain.sent.append(chain.last)
        if call[0] != "look":
            self.ledger.append(chain.last)

    def note_answer(self, chain: Chain, brings: str) -> None:
        assert chain.last is not None
        chain.last.brought = brings
        if brings == "nothing":
            chain.last.lost = self.event()

    def note_end(self, chain: Chain, *, completed: bool) -> None:
        chain.ended, chain.ended_at = self.event(), self.time()
        failed = any(sent.brought != "success" for sent in chain.sent)
        chain.well = chain.ended_well_once = completed and not failed
        if chain.last is not None and chain.last.brought == "running":
            self.note_answer(chain, "nothing")

    def note_recall(self, chain: Chain) -> None:
        if chain.well and self.time() - chain.ended_at <= RECALL:
            chain.well = False
            chain.ended, chain.ended_at = self.event(), self.time()

    def why_asked(self, chain: Chain, call: Call) -> list[Sent]:
        """What may have taken effect, and would be repeated by this call of a chain."""
        return [sent for sent in self.ledger if self.is_in_doubt(sent, chain, call)]

    def may_equal(self, sent: Sent, call: Call) -> bool:
        """Whether trusted hints excuse a call from one that it equals."""
        return self.idempotent and call[0] == "pay" and sent.call == call

    def is_in_doubt(self, sent: Sent, chain: Chain, call: Call) -> bool:
        other = sent.chain
        is_first = sent.call == other.first
        if other is chain or sent.call[0] != call[0] or other.well or sent.brought == "refused":
            return False
        if is_first and sent.brought != "nothing":
            return False
        if self.may_equal(sent, call):
            return False
        equal = other.first == chain.first
        if not equal and (self.shared or sent.brought != "nothing"):
            return False
        lasts = HOUR if sent.brought == "success" else 24 * HOUR
        if self.time() - other.ended_at > lasts:
            return False
        if self.shared:
            return True
        # A person who knew of it agreed to this repetition in a chain with the same first call.
        known = sent.at if equal and not is_first else sent.lost
        if other.ended_well_once:  # Nobody was told of it before the late cancellation.
            known = max(known, other.ended)
        if any(
            later.asked
            and later.chain is not other
            and later.chain.first == chain.first
            and later.call[0] == call[0]
            and later.at > known
            and not self.may_equal(sent, later.call)
            for later in self.ledger
        ):
            return False
        # A later equal chain ended well.
        if (sent.brought != "nothing" or is_first) and any(
            good.ended_well_once and good.first == other.first and good.began > other.ended
            for good in self.chains
        ):
            return False
        # A later equal call succeeded.
        return sent.brought == "success" or not any(
            later.call == sent.call
            and later.brought == "success"
            and later.at > other.ended
            and (later.call == later.chain.first or later.chain.first == other.first)
            for later in self.ledger
        )


class World(Ledger):
    """A server, people, and one conversation of a host that follows chains."""

    def __init__(self, *, shared: bool = False, idempotent: bool = False) -> None:
        super().__init__(shared=shared, idempotent=idempotent)
        self.loop = Clock()
        self.conversation = Conversation(shared=shared, clock=self.loop.time)
        self.broken: list[str] = []

    def time(self) -> float:
        return self.loop.now

    # --- what a host does

    def begin(self, first: Call = PREPARE, *, consents: bool = True, writes: bool = True) -> Chain:
        chain = Chain(first, self.event(), not writes)
        self.chains.append(chain)
        follower = Follower(
            Server(self, chain),
            consent=Person(self, chain, consents),
            conversation=self.conversation,
            total_timeout=TOTAL,
            on_end=self.write(chain),
        )
        chain.task = self.loop.create_task(self.follow(chain, follower))
        self.loop.settle()
        return chain

    def write(self, chain: Chain) -> Any:
        def written(result: ChainResult) -> None:
            if chain.fails_to_write:
                raise BrokenPipeError

        return written

    async def follow(self, chain: Chain, follower: Follower) -> None:
        try:
            chain.result = await follower.call_tool(chain.first[0], {"n": chain.first[1]})
        finally:
            self.end(chain, chain.result.outcome if chain.result else Outcome.CANCELLED)

    def end(self, chain: Chain, outcome: Outcome) -> None:
        """Note how a chain ended, as everybody sees it."""
        self.note_end(chain, completed=outcome is Outcome.COMPLETED and not chain.fails_to_write)
        chain.call = chain.dialog = chain.question = None

    def cancel(self, chain: Chain) -> None:
        """The host gives up: while the chain runs, or after its result was written."""
        if chain.task.done():
            self.cancel_late(chain)
            self.note_recall(chain)
            return
        chain.task.cancel()
        self.loop.settle()

    def cancel_late(self, chain: Chain) -> None:
        if chain.result is not None:
            Follower(Server(self, chain), conversation=self.conversation).not_delivered(
                chain.result
            )

    def answer(self, chain: Chain, brings: str, then: Any = None) -> None:
        """The server answers the running call."""
        running = chain.call
        assert running is not None
        self.note_answer(chain, brings)
        meta = {} if then is None else {"nextTool": then}
        result = {"content": [{"type": "text", "text": "said"}], "_meta": meta}
        running.put_nowait(
            {
                "success": result,
                "failure": {**result, "isError": True},
                "task": {"resultType": "task", "taskId": "1"},
                "invalid": MCPError(-32602, "no"),
                "refused": MCPError(-32021, "no"),
                "nothing": ConnectionError(),
            }[brings]
        )
        self.loop.settle()

    def ask(self, chain: Chain) -> None:
        """The server asks the user, and the question is handed out in an interim result."""
        assert chain.call is not None
        chain.question = self.loop.create_future()
        chain.call.put_nowait(chain.question)
        self.loop.settle()

    def close(self) -> None:
        """Let all chains end by themselves (law 3)."""
        for _ in range(100):
            if all(chain.task.done() for chain in self.chains):
                break
            self.loop.advance(ROUND, ROUND)
        else:
            self.broken.append("law 3: a chain does not end")
        self.loop.close()


class Server:
    """The server, for the calls of one chain."""

    protocol_version = "2026-07-28"
    server_capabilities = {"extensions": {IDENTIFIER: {}}}  # noqa: RUF012

    def __init__(self, world: World, chain: Chain) -> None:
        self.world, self.chain = world, chain

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Any:
        hints = {"destructiveHint": False, "openWorldHint": False}
        return {
            "tools": [
                {
                    "name": name,
                    "inputSchema": {"type": "object"},
                    "annotations": {
                        **hints,
                        **(own if name != "pay" or self.world.idempotent else {}),
                    },
                }
                for name, own in TOOLS.items()
            ]
        }

    def receive(self, name: str, arguments: Any) -> None:
        """Note a call that reached the server, and judge it."""
        world, chain = self.world, self.chain
        call = (name, arguments["n"])
        if chain.sent and name != "look":
            reasons = world.why_asked(chain, call)
            if reasons and not chain.agreed:
                world.broken.append(f"law 1: {call} repeats {[r.call for r in reasons]} unasked")
        world.note_sent(chain, call, asked=chain.agreed)
        chain.agreed = False
        chain.call = asyncio.Queue()

    async def call_tool(self, name: str, arguments: Any, /, **_: Any) -> Any:
        chain = self.chain
        self.receive(name, arguments)
        assert chain.call is not None
        try:
            while True:
                sent = await asyncio.wait_for(chain.call.get(), TOTAL)
                if isinstance(sent, Exception):
                    raise sent
                if not isinstance(sent, asyncio.Future):
                    return sent
                with waiting_for_user(handed_out=True):
                    await asyncio.wait_for(sent, ROUND)
                chain.question = None
        finally:
            chain.call = None


class Person(ConsentPolicy):
    """The user behind one chain, who is asked about each call that is in doubt."""

    trusts_hints = True

    def __init__(self, world: World, chain: Chain, consents: bool) -> None:
        self.world, self.chain, self.consents = world, chain, consents

    async def allows(self, proposal: Proposal) -> bool:
        return self.consents or await self.answer()

    async def allows_again(self, proposal: Proposal) -> bool:
        call = (proposal.tool.name, proposal.arguments["n"])
        if not self.world.why_asked(self.chain, call):
            self.world.broken.append(f"law 2: nothing is in doubt, yet {call} is asked about")
        self.chain.agreed = await self.answer()
        return self.chain.agreed

    async def answer(self) -> bool:
        self.chain.dialog = self.world.loop.create_future()
        try:
            return await asyncio.wait_for(self.chain.dialog, ROUND)
        except TimeoutError:
            return False
        finally:
            self.chain.dialog = None


def named(call: Call | str | None) -> Any:
    """The directive that names a call."""
    return {"tool": call[0], "arguments": {"n": call[1]}} if isinstance(call, tuple) else call
