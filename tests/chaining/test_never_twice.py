"""The record of doubt holds three laws, whatever happens to a host's chains (TC-C-55, TC-C-57).

1. A follow-up call of a chain that did not end well is repeated by a chain with an equal first call
   only if a person agreed, or what excuses it applies.
2. After a good end nothing is asked or held.
3. Every chain ends within a bounded time.
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

from .world import CALLS, HOUR, OTHER, PREPARE, Call, Chain, World, named

pytestmark = pytest.mark.quick

FIRSTS = st.sampled_from([PREPARE] * 5 + [OTHER] * 2 + [("pay", 1)])
BRINGS = st.sampled_from(["success"] * 4 + ["failure", "task", "invalid", "refused", "nothing"])
THEN = st.sampled_from([*CALLS, ("pay", 1), ("pay", 2), None, None, "malformed", ("nowhere", 1)])


class Machine(RuleBasedStateMachine):
    """Any order of what hosts, servers and people do."""

    world: World

    @initialize(shared=st.booleans(), idempotent=st.booleans())
    def start(self, shared: bool, idempotent: bool) -> None:
        self.world = World(shared=shared, idempotent=idempotent)

    def pick(self, data: st.DataObject, *having: str) -> Chain:
        return data.draw(st.sampled_from(self.having(*having)))

    def having(self, *names: str) -> list[Chain]:
        return [c for c in self.world.chains if all(getattr(c, name) for name in names)]

    @precondition(lambda self: len(self.world.chains) < 6)
    @rule(
        first=FIRSTS,
        consents=st.sampled_from([True, True, True, False]),
        writes=st.sampled_from([True] * 5 + [False]),
    )
    def begin(self, first: Call, consents: bool, writes: bool) -> None:
        self.world.begin(first, consents=consents, writes=writes)

    @precondition(lambda self: len(self.world.chains) < 8)
    @rule(
        first=FIRSTS,
        first_brings=st.sampled_from(["success"] * 6 + ["failure", "nothing"]),
        call=st.sampled_from([*CALLS, ("pay", 1), None]),
        brings=BRINGS,
        then=st.sampled_from([None, None, None, ("nowhere", 1)]),
        yes=st.booleans(),
    )
    def whole(
        self, first: Call, first_brings: str, call: Any, brings: str, then: Any, yes: bool
    ) -> None:
        """A chain of one or two calls that nothing disturbs."""
        self.whole_of(first, first_brings, call, brings, yes, then)

    def whole_of(
        self, first: Call, first_brings: str, call: Any, brings: str, yes: bool, then: Any = None
    ) -> None:
        chain = self.world.begin(first)
        if chain.call is not None:
            self.world.answer(chain, first_brings, named(call))
        if chain.dialog is not None:
            chain.dialog.set_result(yes)
            self.world.loop.settle()
        if chain.call is not None and len(chain.sent) == 2:
            self.world.answer(chain, brings, named(then))

    @property
    def made(self) -> list[Chain]:
        """The chains that have ended, and whose steps somebody could ask for again."""
        return [chain for chain in self.world.chains if chain.task.done() and len(chain.sent) > 1]

    @precondition(lambda self: self.made and len(self.world.chains) < 14)
    @rule(
        data=st.data(),
        begins=st.sampled_from(["equally", "equally", "in another way", "with the step"]),
        equal=st.sampled_from([True, True, False]),
        brings=BRINGS,
        yes=st.sampled_from([True, True, False]),
    )
    def again(self, data: st.DataObject, begins: str, equal: bool, brings: str, yes: bool) -> None:
        """Somebody asks again for what an earlier chain did: the whole of it, or a step alone."""
        earlier = data.draw(st.sampled_from(self.made))
        call = data.draw(st.sampled_from(earlier.sent[1:])).call
        if begins == "with the step":
            return self.whole_of(call, brings, None, brings, yes)
        first = earlier.first if begins == "equally" else OTHER
        then = call if equal else (call[0], call[1] % 3 + 1)
        self.whole_of(first, "success", then, brings, yes)

    @precondition(lambda self: [c for c in self.having("call") if not c.question])
    @rule(data=st.data(), brings=BRINGS, then=THEN)
    def answer(self, data: st.DataObject, brings: str, then: Any) -> None:
        chain = data.draw(st.sampled_from([c for c in self.having("call") if not c.question]))
        self.world.answer(chain, brings, named(then))

    @precondition(lambda self: [c for c in self.having("call") if not c.question])
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        self.world.ask(
            data.draw(st.sampled_from([c for c in self.having("call") if not c.question]))
        )

    @precondition(lambda self: self.having("question"))
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        self.pick(data, "question").question.set_result(None)
        self.world.loop.settle()

    @precondition(lambda self: self.having("dialog"))
    @rule(data=st.data(), yes=st.sampled_from([True, True, False]))
    def decide(self, data: st.DataObject, yes: bool) -> None:
        self.pick(data, "dialog").dialog.set_result(yes)
        self.world.loop.settle()

    @precondition(lambda self: self.world.chains)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.world.cancel(data.draw(st.sampled_from(self.world.chains)))

    @rule(seconds=st.sampled_from([30, 60, 120, 300, HOUR + 100, 25 * HOUR]))
    def wait(self, seconds: float) -> None:
        self.world.loop.advance(seconds, max(30.0, seconds / 20))

    @invariant()
    def the_laws_hold(self) -> None:
        assert self.world.broken == []

    @invariant()
    def a_chain_waits_only_for_one_that_goes_on(self) -> None:
        live = [chain for chain in self.world.chains if not chain.task.done()]
        busy = [chain for chain in live if (chain.call or chain.dialog) and not chain.question]
        for chain in live:
            idle = chain.call is None and chain.dialog is None and chain.question is None
            assert not idle or any(other.first == chain.first for other in busy)

    def teardown(self) -> None:
        self.world.close()
        assert self.world.broken == []


def test_the_three_laws_hold(nightly: bool) -> None:
    examples = 400 if nightly else 100
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=not nightly,
        ),
    )


# --- traces that a random run seldom comes to, and that no case of the client suite has


class Story(World):
    """A world in which chains go their way in one line."""

    def chain(self, *steps: Any, first: Call = PREPARE, yes: bool | None = None) -> Chain:
        """Begin a chain, and give it these answers: what each brings, and what it names.

        `yes` is what the user says to each question.
        """
        chain = self.begin(first)
        for brings, *then in steps:
            if chain.dialog is not None and yes is not None:
                chain.dialog.set_result(yes)
                self.loop.settle()
            if chain.call is None:
                break
            self.answer(chain, brings, named(then[0] if then else None))
        return chain


PAY = [("pay", number) for number in range(4)]


def asks(chain: Chain) -> bool:
    return chain.dialog is not None


def again(story: Story, then: Call = PAY[2], first: Call = PREPARE) -> Chain:
    """Another chain, up to the point where it calls or asks."""
    return story.chain(("success", then), first=first)


@pytest.fixture
def story() -> Any:
    story = Story()
    yield story
    story.close()
    assert story.broken == []


@pytest.mark.parametrize("first_brings", ["success", "failure"])
def test_a_chain_that_began_before_ends_no_doubt(story: Story, first_brings: str) -> None:
    early = story.begin()
    story.chain(("success", PAY[1]), ("failure",))
    story.answer(early, first_brings)
    assert asks(again(story))


@pytest.mark.parametrize(("after", "doubts"), [(59.0, True), (61.0, False)])
def test_a_cancellation_soon_after_the_result_brings_the_doubt_back(
    story: Story, after: float, doubts: bool
) -> None:
    chain = story.chain(("success", PAY[1]), ("success",))
    story.loop.advance(after, after)
    story.cancel(chain)
    assert asks(again(story)) is doubts
