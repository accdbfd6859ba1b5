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

from tool_chaining import Conversation
from tool_chaining.record import MAX_ENTRIES, Answer
from tool_chaining.values import CallKey

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
        chain = self.world.begin(first)
        if chain.call is not None:
            self.world.answer(chain, first_brings, named(call))
        if chain.dialog is not None:
            chain.dialog.set_result(yes)
            self.world.loop.settle()
        if chain.call is not None and len(chain.sent) == 2:
            self.world.answer(chain, brings, named(then))

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
    examples = 400 if nightly else 50
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=not nightly,
        ),
    )


# --- short traces


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
LOST = ("nothing",)
NOWHERE = ("nowhere", 1)


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


@pytest.mark.parametrize(
    "ends",
    [
        [("success", ("audit", 1)), ("failure",)],
        [("success", ("audit", 1)), LOST],
        [("success", NOWHERE)],
        [("success", "malformed")],
        [("failure",)],
        [("task",)],
        [("invalid",)],
        [LOST],
    ],
)
def test_a_chain_that_did_not_end_well_is_repeated_only_by_a_yes(story: Story, ends: Any) -> None:
    story.chain(("success", PAY[1]), *ends)
    repeated = again(story)
    assert asks(repeated)
    assert asks(again(story, first=OTHER)) is (ends[0] == LOST)
    repeated.dialog.set_result(True)  # type: ignore[union-attr]
    story.loop.settle()
    story.answer(repeated, "success")
    assert not asks(again(story)), "a yes, and a good end"


@pytest.mark.parametrize("first_brings", ["failure", "success"])
def test_an_error_in_the_first_result_is_no_good_end(story: Story, first_brings: str) -> None:
    """`get` fails, and `pay` recovers: the next time it is asked about."""
    story.chain((first_brings, PAY[1]), ("success",))
    assert asks(again(story)) is (first_brings == "failure")


def test_a_chain_that_ended_well_hinders_nobody(story: Story) -> None:
    chains = [again(story, PAY[number]) for number in range(3)]
    for chain in chains:
        assert [asks(other) for other in chains] == [False] * 3
        assert [other.call is not None for other in chains].count(True) == 1
        story.answer(chain, "success")
    assert [chain.well for chain in chains] == [True] * 3


def test_a_chain_puts_nothing_of_its_own_in_doubt(story: Story) -> None:
    chain = story.chain(("success", PAY[1]), ("success", PAY[2]), ("failure", PAY[3]))
    assert chain.last is not None
    assert chain.last.call == PAY[3]


def test_a_running_call_hinders_no_chain_with_another_first_call(story: Story) -> None:
    running = again(story)
    assert again(story, first=OTHER).call is not None
    assert running.call is not None


def test_a_refused_call_leaves_no_doubt(story: Story) -> None:
    story.chain(("success", PAY[1]), ("refused",))
    assert not asks(again(story))


def test_a_lost_first_call_puts_its_tool_in_doubt_until_an_equal_one_succeeds(
    story: Story,
) -> None:
    story.chain(LOST, first=PAY[1])
    assert asks(again(story))
    story.chain(("success",), first=PAY[1])
    assert not asks(again(story, first=OTHER))


def test_the_success_of_another_chain_ends_no_doubt(story: Story) -> None:
    """Ann's charge may have been made; Bob's equal charge says nothing about it."""
    story.chain(("success", PAY[1]), ("failure",))
    story.chain(("success", PAY[1]), ("success",), first=OTHER)
    assert asks(again(story))


def test_an_equal_call_after_an_equal_first_call_ends_a_doubt_about_a_failure(
    story: Story,
) -> None:
    story.chain(("success", PAY[1]), LOST)
    story.chain(("success", PAY[1]), ("success", NOWHERE), yes=True)
    assert not asks(again(story, first=OTHER))


def test_a_success_before_the_end_of_the_chain_ends_nothing(story: Story) -> None:
    """Each of two chains lost its answer. What the second sent says nothing about the first."""
    first = story.chain(("success", PAY[1]), LOST)
    story.chain(("success", PAY[1]), ("success", ("audit", 1)), first=OTHER, yes=True)
    assert asks(again(story, first=PREPARE))
    assert first.task.done()


def test_an_equal_call_before_the_end_of_the_chain_ends_no_doubt(story: Story) -> None:
    failing = story.chain(("success", PAY[1]), ("failure", ("audit", 1)))
    story.chain(("success",), first=PAY[1])
    story.answer(failing, "failure")
    assert asks(again(story))


def test_a_yes_from_before_a_doubt_is_no_yes_to_it(story: Story) -> None:
    careful = story.begin(consents=False)
    story.answer(careful, "success", named(PAY[1]))
    assert asks(careful)
    story.chain(("success", PAY[2]), LOST, first=OTHER)
    careful.dialog.set_result(True)  # type: ignore[union-attr]
    story.loop.settle()
    assert asks(careful)


@pytest.mark.parametrize("first_brings", ["success", "failure"])
def test_a_chain_that_began_before_ends_no_doubt(story: Story, first_brings: str) -> None:
    early = story.begin()
    story.chain(("success", PAY[1]), ("failure",))
    story.answer(early, first_brings)
    assert asks(again(story))


def test_a_good_end_ends_the_doubt_about_an_equal_first_call(story: Story) -> None:
    story.chain(LOST, first=PAY[1])
    story.chain(("success", ("audit", 1)), ("success",), first=PAY[1])
    assert not asks(again(story))


def test_a_good_end_does_not_end_the_doubt_about_an_unanswered_call(story: Story) -> None:
    story.chain(("success", PAY[1]), LOST)
    assert story.chain(("success",)).well
    assert asks(again(story))


def test_a_later_good_end_ends_the_doubt_about_answered_calls(story: Story) -> None:
    story.chain(("success", PAY[1]), ("failure",))
    during = again(story)
    assert story.chain(("success",)).well
    story.loop.settle()
    assert asks(during)
    during.dialog.set_result(False)  # type: ignore[union-attr]
    story.loop.settle()
    assert not asks(again(story))


def test_a_yes_counts_for_chains_with_one_first_call(story: Story) -> None:
    story.chain(("success", PAY[1]), LOST)
    story.chain(("success", PAY[2]), ("success",), first=OTHER, yes=True)
    assert not asks(again(story, PAY[3], first=OTHER))
    assert asks(again(story, PAY[3]))


def test_an_idempotent_call_may_repeat_only_what_it_equals() -> None:
    story = Story(idempotent=True)
    story.chain(("success", PAY[1]), ("failure",))
    assert not asks(again(story, PAY[1]))
    story.close()
    story = Story(idempotent=True)
    story.chain(("success", PAY[1]), ("failure",))
    assert asks(again(story, PAY[2]))
    story.close()


def test_where_users_share_a_conversation_nothing_but_time_ends_a_doubt() -> None:
    story = Story(shared=True)
    story.chain(("success", PAY[1]), LOST)
    assert not asks(again(story, first=OTHER))
    story.chain(("success", PAY[1]), ("success", NOWHERE), yes=True)
    story.chain(("success",))
    assert asks(again(story))
    story.loop.advance(25 * HOUR, HOUR)
    assert not asks(again(story))
    story.close()


@pytest.mark.parametrize(("ends", "hours"), [(("success", NOWHERE), 1), (("failure",), 24)])
def test_a_doubt_ends_by_time_from_the_end_of_its_chain(
    story: Story, ends: Any, hours: int
) -> None:
    story.chain(("success", PAY[1]), ends)
    story.loop.advance(hours * HOUR - 1, HOUR)
    asked = again(story)
    assert asks(asked)
    story.cancel(asked)
    story.loop.advance(1.5)
    assert not asks(again(story))


@pytest.mark.parametrize(("after", "doubts"), [(59.0, True), (61.0, False)])
def test_a_cancellation_soon_after_the_result_brings_the_doubt_back(
    story: Story, after: float, doubts: bool
) -> None:
    chain = story.chain(("success", PAY[1]), ("success",))
    story.loop.advance(after, after)
    story.cancel(chain)
    assert asks(again(story)) is doubts


def test_a_chain_that_was_cancelled_late_ended_at_the_cancellation(story: Story) -> None:
    chain = story.chain(("success", PAY[1]), ("success",))
    between = story.begin()
    story.cancel(chain)
    story.answer(between, "success")
    assert between.well
    assert asks(again(story))


def test_a_result_that_cannot_be_written_is_no_good_end(story: Story) -> None:
    chain = story.begin(writes=False)
    story.answer(chain, "success", named(PAY[1]))
    story.answer(chain, "success")
    assert asks(again(story))


def test_a_chain_waits_for_each_before_it_as_long_as_a_chain_may_take(story: Story) -> None:
    first, second, third = (again(story, PAY[number]) for number in range(3))
    assert first.call is not None
    story.ask(first)  # Handed out: the turn goes on.
    assert asks(second)
    assert third.call is None
    story.cancel(second)
    assert asks(third)


def test_the_time_of_waiting_and_of_questions_is_not_the_chains_own(story: Story) -> None:
    story.chain(("success", PAY[1]), ("failure",))
    slow = again(story)
    story.loop.advance(500)
    slow.dialog.set_result(True)  # type: ignore[union-attr]
    story.loop.settle()
    story.answer(slow, "success")
    assert slow.well


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
    assert not record.doubts(
        record.begin("gone", CallKey("prepare", "1")), pay, idempotent=False
    ) - {entry for entry in doubts if entry.answer is Answer.NONE}
