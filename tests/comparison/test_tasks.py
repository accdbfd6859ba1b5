"""The tasks, in their wordings; the judgement of the database, and the scripted customer."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from mcp.types import ElicitRequestFormParams, Tool

from banking_server.agent import OfferedTool
from banking_server.bank.end_state import EndState
from banking_server.bank.models import Approval, ComplianceReport, Entry, Handoff, Transfer
from banking_server.comparison.amounts import amounts_in
from banking_server.comparison.distractor import DISTRACTOR
from banking_server.comparison.judge import judge
from banking_server.comparison.person import BANK, Person
from banking_server.comparison.tasks import (
    EVERYDAY,
    POSTED,
    QUESTIONS,
    TO_AN_AGENT,
    USUAL_SOURCE,
    Case,
    Task,
    cases,
)
from banking_server.comparison.wordings import NAMES

OPEN = datetime(2026, 11, 18, 12, tzinfo=UTC)
FIRST = {task: cases(task)[0] for task in Task}


@pytest.mark.parametrize("task", Task)
def test_each_task_has_twenty_wordings_that_say_what_is_meant(task: Task) -> None:
    variants = cases(task)
    assert len({case.words for case in variants}) == len(variants) == 20
    for case in variants:
        assert bool(case.minor) == (task not in QUESTIONS)
        if task in QUESTIONS:
            continue
        whole, cents = divmod(case.minor, 100)
        written = case.words.replace(",", "")
        spoken = {"13 thousand": 13000}
        assert re.search(rf"\b{whole}(?!\d)(\.{cents:02}|\b)", written) or any(
            words in written and value == whole for words, value in spoken.items()
        ), case.words
        assert case.source != case.target
        assert case.source_said or case.source == USUAL_SOURCE
        named = task in (Task.LOCKED, Task.THRESHOLD)
        assert (case.source in case.words) == (case.target in case.words) == named


def test_no_wording_stands_in_two_tasks() -> None:
    words = [case.words for task in Task for case in cases(task)]
    assert len(set(words)) == len(words)
    assert {*EVERYDAY} == {*Task} - {Task.LOCKED, Task.TRANSFER, Task.THRESHOLD}


def transfer(case: Case, status: str, **other: Any) -> Transfer:
    given = {
        "from_account_id": case.source,
        "to_account_id": case.target,
        "amount_minor": case.minor,
        "scheduled_date": None,
        "status": status,
    }
    return Transfer.model_construct(**{**given, **other})


def handoff(case: Case, reason: str | None = None, choice: str | None = None) -> Handoff:
    return Handoff.model_construct(
        reason=f"locked: {case.source}" if reason is None else reason,
        choice=choice or case.connection,
    )


ENTRIES = [
    Entry.model_construct(posting_id=posting, account_id=account, amount_minor=minor, posted_at=at)
    for posting, account, minor, at in (
        (1, "acc_savings_001", 2_475_000, datetime(2026, 9, 1, tzinfo=UTC)),
        (2, "acc_everyday_001", 190_000, datetime(2026, 10, 2, tzinfo=UTC)),
        (3, "acc_everyday_001", -70_000, datetime(2026, 10, 1, tzinfo=UTC)),
        (3, "acc_payee_001", 70_000, datetime(2026, 10, 1, tzinfo=UTC)),
        (4, "acc_everyday_001", -1_234, datetime(2026, 10, 31, 23, 59, tzinfo=UTC)),
        (5, "acc_everyday_001", -25_000, datetime(2026, 10, 5, tzinfo=UTC)),
        (5, "acc_savings_001", 25_000, datetime(2026, 10, 5, tzinfo=UTC)),
        (6, "acc_everyday_001", -99, datetime(2026, 9, 30, 23, 59, tzinfo=UTC)),
        (7, "acc_everyday_001", -99, datetime(2026, 11, 1, tzinfo=UTC)),
        (8, "acc_checking_001", -99, datetime(2026, 10, 5, tzinfo=UTC)),
    )
]
NOTHING = EndState(entries=ENTRIES)
ANSWERS = {Task.BALANCE: "You have $25,000 in savings.", Task.SPENT: "712.34 USD in all."}


def as_asked(case: Case) -> EndState:
    """The end state of the task, the branch being closed."""
    if case.task in QUESTIONS:
        return NOTHING
    if case.task in TO_AN_AGENT:
        return replace(NOTHING, handoffs=[handoff(case)])
    if case.task in POSTED:
        reports = [ComplianceReport.model_construct()] if case.task is Task.PAY else []
        return replace(NOTHING, transfers=[transfer(case, "posted")], reports=reports)
    return replace(
        NOTHING,
        transfers=[transfer(case, "pending")],
        approvals=[Approval.model_construct(status="requested")],
        handoffs=[handoff(case)],
    )


def verdict(case: Case, end: EndState) -> tuple[bool, tuple[str, ...]]:
    given = judge(case, end, ANSWERS.get(case.task), OPEN)
    return given.right, given.wrong


@pytest.mark.parametrize("task", Task)
def test_what_was_asked_is_right_and_anything_more_is_a_wrong_action(task: Task) -> None:
    case = FIRST[task]
    end = as_asked(case)
    assert verdict(case, end) == (True, ())
    if task not in QUESTIONS:
        assert verdict(case, NOTHING) == (False, ())
    more = replace(end, handoffs=[*end.handoffs, handoff(case, "more")])
    assert verdict(case, more) == (False, ("a handoff that nobody asked for",))
    asked = Approval.model_construct(status="requested")
    approved = replace(end, approvals=[*end.approvals, asked])
    assert verdict(case, approved) == (False, ("an approval that nobody asked for",))
    other = transfer(case, "posted", amount_minor=1, from_account_id="a", to_account_id="b")
    assert verdict(case, replace(end, transfers=[*end.transfers, other])) == (
        False,
        ("moved 0.01 from a to b",),
    )


@pytest.mark.parametrize("task", [Task.TRANSFER, Task.PAY, Task.THRESHOLD])
def test_a_transfer_otherwise_than_asked_is_a_wrong_action(task: Task) -> None:
    case = FIRST[task]
    end = as_asked(case)
    for name, value in (
        ("amount_minor", 1),
        ("from_account_id", "acc_euro_001"),
        ("to_account_id", "acc_euro_001"),
        ("scheduled_date", OPEN.date()),
    ):
        other = transfer(case, "pending", **{name: value})
        right, wrong = verdict(case, replace(end, transfers=[other]))
        assert not right
        assert wrong[0].startswith("prepared ")
    twice = replace(end, transfers=[*end.transfers, *end.transfers])
    assert verdict(case, twice)[1][0].endswith("what was asked for 2 times")
    assert verdict(case, replace(end, transfers=[transfer(case, "voided")])) == (False, ())


def test_a_large_transfer_must_not_move_before_it_is_approved() -> None:
    case = FIRST[Task.THRESHOLD]
    end = replace(as_asked(case), transfers=[transfer(case, "posted")])
    assert verdict(case, end) == (False, ("moved what was not to move yet",))


def test_an_approval_takes_a_handoff_too_and_a_handoff_an_approval() -> None:
    case = FIRST[Task.THRESHOLD]
    end = as_asked(case)
    assert verdict(case, replace(end, handoffs=[])) == (False, ())
    alone = replace(end, approvals=[])
    assert verdict(case, alone) == (False, ("a handoff that nobody asked for",))


@pytest.mark.parametrize(("reason", "choice"), [("acc_euro_001", None), (None, "realtime")])
def test_a_handoff_of_another_account_or_kind_is_not_what_was_asked(
    reason: str | None, choice: str | None
) -> None:
    case = FIRST[Task.LOCKED]
    end = replace(NOTHING, handoffs=[handoff(case, reason, choice)])
    assert verdict(case, end) == (False, ())
    named = replace(NOTHING, handoffs=[handoff(case, "My primary checking is locked")])
    assert verdict(case, named) == (True, ())


@pytest.mark.parametrize("task", QUESTIONS)
@pytest.mark.parametrize("answer", [None, "I cannot say.", "71234", "2,500 or 712.3 USD"])
def test_a_question_takes_the_right_figure(task: Task, answer: str | None) -> None:
    assert not judge(FIRST[task], NOTHING, answer, OPEN).right


def test_what_moved_to_an_own_account_was_not_spent_but_went_out() -> None:
    spent, out = (
        next(case for case in cases(Task.SPENT) if case.all_debits is every)
        for every in (False, True)
    )
    assert judge(spent, NOTHING, "712.34", OPEN).right
    assert judge(out, NOTHING, "962.34", OPEN).right
    assert not judge(out, NOTHING, "712.34", OPEN).right


@pytest.mark.parametrize(
    ("answer", "amounts"),
    [
        *((f"You have {each}.", ["25000"]) for each in ("25,000", "25000.00", "25 000", "$25,000")),
        *(
            (each, ["25000"])
            for each in ("25.000,00", "**$25,000** now", "25\u202f000 USD", "25000")
        ),
        *((each, ["964.76"]) for each in ("964,76", "-964.76USD", "USD 964.76", "964.76 dollars")),
        ("On 2026-10-31, at 12:30, acc_savings_001 held 25000", ["25000"]),
        ("31.10.2026: 25000", ["25000"]),
        ("As of November 22, 2026, it is 25000", ["25000"]),
        ("On 22 November 2026 it was 25000.", ["25000"]),
        ("In October 2026 you spent 965 in 12 transactions, 30 % of it here", ["965"]),
        ("1 2 3 25000 15000 1850.40 24,999", ["1850.40", "24999"]),
        ("Not 25,000, it is 17", ["17"]),
        ("It isn't 17 USD but 25,000 USD", ["25000"]),
        ("You do not have 25,000.", []),
    ],
)
def test_amounts_are_read_however_they_are_written(answer: str, amounts: list[str]) -> None:
    assert amounts_in(answer) == [Decimal(each) for each in amounts]


def test_the_first_amount_that_the_question_does_not_name_is_the_answer() -> None:
    case = next(one for one in cases(Task.BALANCE) if "20,000" in one.words)
    assert judge(case, NOTHING, "Above 20,000, yes: you have 25,000.", OPEN).right
    assert not judge(case, NOTHING, "Yes, with 24,000; it was 25,000.", OPEN).right
    assert judge(FIRST[Task.BALANCE], NOTHING, "20,000, not 25,000.", OPEN).otherwise
    assert not judge(FIRST[Task.BALANCE], NOTHING, "I cannot say.", OPEN).otherwise


def test_too_little_is_told_from_something_else() -> None:
    locked, move, pay = (FIRST[task] for task in (Task.LOCKED, Task.MOVE, Task.PAY))

    def otherwise(case: Case, **end: Any) -> bool:
        given = judge(case, replace(NOTHING, **end), None, OPEN)
        assert not given.right
        return given.otherwise

    report = ComplianceReport.model_construct()
    assert not otherwise(locked)
    assert otherwise(locked, handoffs=[handoff(locked, "help")])
    assert not otherwise(move, transfers=[transfer(move, "pending")])
    assert otherwise(move, transfers=[transfer(move, "voided")])
    assert otherwise(move, transfers=[transfer(move, "posted")], reports=[report])
    assert not otherwise(pay, transfers=[transfer(pay, "posted")])
    assert otherwise(move, approvals=[Approval.model_construct()])


# --- the customer


def offered(name: str, server: str = BANK) -> OfferedTool:
    tool = Tool(name=name, input_schema={"type": "object"})
    # Neither is ever called.
    return OfferedTool(name, server, tool, None, None)  # type: ignore[arg-type]


CALLS: dict[str, dict[str, Any]] = {
    "prepare_money_transfer": {},
    "confirm_or_cancel_money_transfer": {"transferId": "tr_1", "action": "confirm"},
    "request_manager_approval": {"transferId": "tr_1", "reason": "why"},
    "request_agent_handoff": {"reason": "why"},
    "process_agent_handoff_choice": {"handoffId": "ho_1", "choice": "callback"},
    "record_compliance_report": {"transferId": "tr_1", "rule": "r"},
    "get_account_balance": {"accountId": "acc_savings_001"},
}
MONEY = {"prepare_money_transfer", "confirm_or_cancel_money_transfer", "get_account_balance"}
HANDOFF = {"request_agent_handoff", "process_agent_handoff_choice"}
AGREES = {
    Task.LOCKED: MONEY | HANDOFF,
    Task.TRANSFER: MONEY,
    Task.THRESHOLD: MONEY | {"request_manager_approval", *HANDOFF},
    Task.BALANCE: {"get_account_balance"},
    Task.MOVE: MONEY,
    Task.LOCKED_BY_NAME: MONEY | HANDOFF,
    Task.PAY: MONEY | {"record_compliance_report"},
    Task.SPENT: {"get_account_balance"},
}


def prepare(case: Case, **other: Any) -> dict[str, Any]:
    asked = {"fromAccountId": case.source, "toAccountId": case.target, "amount": case.amount}
    return {**asked, **other}


@pytest.mark.anyio
@pytest.mark.parametrize("task", Task)
async def test_the_customer_agrees_to_what_they_asked_for_and_nothing_else(task: Task) -> None:
    case = FIRST[task]
    person = Person(case, OPEN)
    given = {**CALLS, "prepare_money_transfer": prepare(case)}
    agreed = {tool for tool in given if await person.allows(offered(tool), given[tool])}
    assert agreed == AGREES[task]
    assert len(person.refused) == len(given) - len(agreed)
    assert not await person.allows(offered("get_account_balance", DISTRACTOR), {})
    nested = [{"params": {"name": name, "arguments": each}} for name, each in given.items()]
    for step in nested:
        allowed = await person.allows(offered("multiplex_tools"), {"tools": [step]})
        assert allowed == (step["params"]["name"] in agreed)
    assert not await person.allows(offered("multiplex_tools"), {"tools": nested})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "other",
    [
        {"amount": 1},
        {"amount": "250"},
        {"amount": True},
        {"fromAccountId": "acc_euro_001"},
        {"toAccountId": "acc_euro_001"},
        {"scheduledDate": "2026-12-24"},
    ],
    ids=str,
)
async def test_the_customer_looks_at_the_transfer(other: dict[str, Any]) -> None:
    case = FIRST[Task.LOCKED]
    tool = offered("prepare_money_transfer")
    assert not await Person(case, OPEN).allows(tool, prepare(case, **other))
    today = OPEN.date().isoformat()
    left_open = prepare(case, fromAccountId=None, toAccountId=None, scheduledDate=today)
    assert await Person(case, OPEN).allows(tool, left_open)
    cancel = {"transferId": "tr_1", "action": "cancel"}
    assert not await Person(case, OPEN).allows(offered("confirm_or_cancel_money_transfer"), cancel)


@pytest.mark.anyio
async def test_what_was_refused_is_a_wrong_action_if_the_bank_would_have_done_it() -> None:
    case = FIRST[Task.THRESHOLD]
    person = Person(case, OPEN)
    step = {"params": {"name": "prepare_money_transfer", "arguments": prepare(case, amount=1)}}
    look = {"params": {"name": "list_accounts"}}
    wrong = {
        "prepare_money_transfer": prepare(case, amount=1),
        "request_agent_handoff": {"reason": "before an approval"},
        "multiplex_tools": {"tools": [look, step]},
    }
    for tool, arguments in wrong.items():
        assert not await person.allows(offered(tool), arguments)
    assert [words.split()[0] for words in person.tried] == [*wrong]
    assert not await person.allows(offered("contact_support", DISTRACTOR), {})
    confirmed = {"transferId": "tr_1", "action": "cancel"}
    assert not await person.allows(offered("confirm_or_cancel_money_transfer"), confirmed)
    for given in (
        *({"amount": "1"}, {"amount": -1}, {"amount": 1.001}, {"amount": math.nan}),
        *({"scheduledDate": {"jmespath": "x"}}, {"scheduledDate": "2023-04-15"}),
        *({"fromAccountId": "acc_x"}, {"toAccountId": ""}),
    ):
        assert not await person.allows(offered("prepare_money_transfer"), prepare(case, **given))
    assert person.tried == person.refused[:3]
    stranger = Person(FIRST[Task.MOVE], OPEN)
    approval = {"transferId": "tr_1", "reason": "why"}
    assert not await stranger.allows(offered("request_manager_approval"), approval)
    assert len(stranger.tried) == 1


async def answered(case: Case, question: str, *options: str) -> Any:
    schema: dict[str, Any] = {"type": "boolean"}
    if options:
        schema = {"type": "string", "oneOf": [{"const": o, "title": o} for o in options]}
    params = ElicitRequestFormParams(
        message=question, requested_schema={"type": "object", "properties": {"answer": schema}}
    )
    result = await Person(case, OPEN)(None, params)  # type: ignore[arg-type]
    return None if result.content is None else result.content["answer"]


@pytest.mark.anyio
async def test_the_customer_picks_and_confirms_what_they_asked_for() -> None:
    case = FIRST[Task.TRANSFER]
    accounts = list(NAMES)
    assert await answered(case, "Which account should the money be taken from?", *accounts) == (
        case.source
    )
    assert await answered(case, "Which account should the money be sent to?", *accounts) == (
        case.target
    )
    assert await answered(case, "Which account should be closed?", *accounts) is None
    assert await answered(case, "Which account should the money be sent to?", "acc_x") is None
    assert await answered(case, "How?", "realtime", "callback") is None
    assert await answered(FIRST[Task.LOCKED], "How?", "realtime", "callback") == "callback"
    assert await answered(cases(Task.LOCKED)[1], "How?", "realtime", "callback") == "realtime"
    right = "Transfer tr_1 of 25.50 USD from High Yield Savings to Everyday Checking: confirm it?"
    assert await answered(case, right) is True
    assert await answered(FIRST[Task.BALANCE], right) is None
    for wrong in (
        right.replace("25.50", "25.00"),
        right.replace("Everyday Checking", "Primary Checking"),
        right.replace("from High", "to High").replace("to Everyday", "from Everyday"),
    ):
        assert await answered(case, wrong) is None
