"""The record of doubt says of each call what a ledger of everything that happened says (TC-C-55).

`test_never_twice.py` plays whole hosts, and comes to a rare sequence seldom. The record alone is a
model without input and output, so here a run tries hundreds of thousands of them.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tool_chaining import Conversation
from tool_chaining.record import MAX_ENTRIES, Answer
from tool_chaining.record import Chain as Recorded
from tool_chaining.values import CallKey

from .world import HOUR, OTHER, PREPARE, Call, Chain, Ledger

pytestmark = pytest.mark.quick

PAY = ("pay", 1)
FIRSTS = [PREPARE, OTHER, PAY]
CALLS = [PAY, ("pay", 2)]
BRINGS = {
    "success": Answer.SUCCESS,
    "failure": Answer.FAILURE,
    "nothing": Answer.NONE,
    "refused": Answer.REFUSED,
}

firsts, calls, brought = map(st.sampled_from, (FIRSTS, CALLS, [*BRINGS]))


def key(call: Call) -> CallKey:
    return CallKey(call[0], str(call[1]))


class Machine(RuleBasedStateMachine):
    """Any order in which chains begin, call and end; several can run at once."""

    @initialize(shared=st.booleans(), idempotent=st.booleans())
    def start(self, shared: bool, idempotent: bool) -> None:
        self.ledger = Ledger(shared=shared, idempotent=idempotent)
        self.record = Conversation(shared=shared, clock=self.ledger.time)
        self.running: dict[Chain, Recorded] = {}
        self.entries: dict[Chain, Any] = {}

    def begin(self, first: Call) -> Chain:
        chain = Chain(first, self.ledger.event(), fails_to_write=False)
        number = str(len(self.ledger.chains))
        self.ledger.chains.append(chain)
        self.running[chain] = self.record.begin(number, key(first))
        return chain

    def in_doubt(self, chain: Recorded, call: Call) -> Any:
        idempotent = self.ledger.idempotent and call[0] == "pay"
        return self.record.doubts(chain, key(call), idempotent=idempotent)

    def send(self, chain: Chain, call: Call, *, yes: bool) -> bool:
        """Send a call, if nothing is in doubt or somebody agrees."""
        doubts = self.in_doubt(self.running[chain], call) if chain.sent else frozenset()
        if doubts and not yes:
            return False
        self.entries[chain] = self.record.send(
            self.running[chain], key(call), doubts, keep=call[0] != "look"
        )
        self.ledger.note_sent(chain, call, asked=bool(doubts))
        return True

    def answer(self, chain: Chain, brings: str) -> None:
        self.record.answered(self.entries[chain], BRINGS[brings])
        self.ledger.note_answer(chain, brings)

    def end(self, chain: Chain, *, completed: bool) -> None:
        assert chain.last is not None
        if chain.last.brought == "running":
            self.record.answered(self.entries[chain], Answer.NONE)
            self.ledger.note_answer(chain, "nothing")
        self.ledger.note_end(chain, completed=completed)
        self.record.end(self.running.pop(chain), well=chain.well)

    @rule(
        first=firsts,
        first_brings=st.sampled_from([*["success"] * 4, "failure", "nothing"]),
        call=st.sampled_from([*CALLS, *CALLS, None, ("look", 1)]),
        brings=brought,
        completed=st.booleans(),
        yes=st.booleans(),
    )
    def whole(
        self, first: Call, first_brings: str, call: Any, brings: str, completed: bool, yes: bool
    ) -> None:
        """A chain of one or two calls that nothing disturbs."""
        chain = self.begin(first)
        self.send(chain, first, yes=False)
        self.answer(chain, first_brings)
        if call is not None and first_brings != "nothing" and self.send(chain, call, yes=yes):
            self.answer(chain, brings)
        self.end(chain, completed=completed)

    @precondition(lambda self: len(self.running) < 2)
    @rule(first=firsts)
    def first_call(self, first: Call) -> None:
        self.send(self.begin(first), first, yes=False)

    def having(self, *brought: str) -> list[Chain]:
        """The running chains whose last call brought one of these."""
        return [chain for chain in self.running if chain.last and chain.last.brought in brought]

    @precondition(lambda self: self.having("running", "success", "failure"))
    @rule(data=st.data(), call=calls, yes=st.booleans())
    def step(self, data: st.DataObject, call: Call, yes: bool) -> None:
        chain = data.draw(st.sampled_from(self.having("running", "success", "failure")))
        assert chain.last is not None
        if chain.last.brought == "running":
            self.answer(chain, "success")
        self.send(chain, call, yes=yes)

    @precondition(lambda self: self.having("running"))
    @rule(data=st.data(), brings=brought)
    def reply(self, data: st.DataObject, brings: str) -> None:
        self.answer(data.draw(st.sampled_from(self.having("running"))), brings)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), completed=st.booleans())
    def finish(self, data: st.DataObject, completed: bool) -> None:
        self.end(data.draw(st.sampled_from([*self.running])), completed=completed)

    @precondition(lambda self: len(self.ledger.chains) > len(self.running))
    @rule(data=st.data())
    def cancel_late(self, data: st.DataObject) -> None:
        chain = data.draw(st.sampled_from([c for c in self.ledger.chains if c not in self.running]))
        self.record.recall(str(self.ledger.chains.index(chain)))
        self.ledger.note_recall(chain)

    @rule(seconds=st.sampled_from([30.0, 60.0, 90.0, HOUR + 1, 24 * HOUR + 1]))
    def wait(self, seconds: float) -> None:
        self.ledger.now += seconds

    @invariant()
    def record_and_ledger_agree(self) -> None:
        for first in FIRSTS:
            chain = Chain(first, self.ledger.events, fails_to_write=False)
            recorded = self.record.begin("next", key(first))
            for call in CALLS:
                doubts = bool(self.in_doubt(recorded, call))
                assert doubts == bool(self.ledger.why_asked(chain, call)), (first, call)


def test_the_record_agrees_with_the_ledger(nightly: bool) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=5_000 if nightly else 500,
            stateful_step_count=12,
            deadline=None,
            derandomize=not nightly,
        ),
    )


def test_a_full_record_keeps_what_was_not_answered() -> None:
    record, pay = Conversation(), CallKey("pay", "{}")

    def ended(number: int, answer: Answer) -> None:
        chain = record.begin(str(number), CallKey("prepare", str(number)))
        record.answered(record.send(chain, pay, frozenset(), keep=True), answer)
        record.end(chain, well=False)

    ended(0, Answer.NONE)
    for number in range(1, MAX_ENTRIES + 5):
        ended(number, Answer.FAILURE)
    last = record.begin("last", CallKey("prepare", str(MAX_ENTRIES)))
    doubts = record.doubts(last, pay, idempotent=False)
    assert {entry.answer for entry in doubts} == {Answer.NONE, Answer.FAILURE}
    gone = record.begin("gone", CallKey("prepare", "1"))
    assert {each.answer for each in record.doubts(gone, pay, idempotent=False)} == {Answer.NONE}
