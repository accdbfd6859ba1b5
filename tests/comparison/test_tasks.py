"""The tasks of the comparison, and when one is achieved."""

from dataclasses import replace

import pytest

from banking_server.bank.end_state import EndState
from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.comparison.tasks import Case, Task, cases, is_achieved

LOCKED, TRANSFER, THRESHOLD = (cases(task)[0] for task in Task)
NOTHING = EndState(transfers=[], handoffs=[], approvals=[])


@pytest.mark.parametrize("task", Task)
def test_the_variants_of_a_task_differ_in_words_and_amounts(task: Task) -> None:
    variants = cases(task)
    assert len({case.words for case in variants}) == len({case.amount for case in variants})
    assert len(variants) == 5
    for case in variants:
        assert f"{case.amount:g}" in case.words or str(case.amount) in case.words
        assert (case.source in case.words) == (task is not Task.TRANSFER)


def transfer(case: Case, status: str) -> Transfer:
    return Transfer.model_construct(
        from_account_id=case.source,
        to_account_id=case.target,
        amount_minor=round(case.amount * 100),
        status=status,
    )


def as_asked(case: Case) -> EndState:
    """Return the end state of the task, with the branch open."""
    if case.task is Task.LOCKED:
        return replace(
            NOTHING, handoffs=[Handoff.model_construct(reason=case.source, choice="callback")]
        )
    if case.task is Task.TRANSFER:
        return replace(NOTHING, transfers=[transfer(case, "posted")])
    approvals = [Approval.model_construct(status="requested")]
    return replace(NOTHING, transfers=[transfer(case, "pending")], approvals=approvals)


@pytest.mark.parametrize("case", [LOCKED, TRANSFER, THRESHOLD], ids=lambda case: case.task.name)
def test_what_was_asked_and_nothing_else_is_achieved(case: Case) -> None:
    end = as_asked(case)
    assert is_achieved(case, end, branch_open=True)
    assert not is_achieved(case, NOTHING, branch_open=True)
    more = replace(
        end, handoffs=[*end.handoffs, Handoff.model_construct(reason="more", choice=None)]
    )
    assert not is_achieved(case, more, branch_open=True)
    twice = replace(end, transfers=[*end.transfers, transfer(case, "posted")])
    assert not is_achieved(case, twice, branch_open=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amount_minor", 1),
        ("from_account_id", "acc_euro_001"),
        ("to_account_id", "acc_euro_001"),
        ("status", "voided"),
    ],
)
@pytest.mark.parametrize("case", [TRANSFER, THRESHOLD], ids=lambda case: case.task.name)
def test_another_transfer_is_not_what_was_asked(case: Case, name: str, value: str | int) -> None:
    end = as_asked(case)
    setattr(end.transfers[0], name, value)
    assert not is_achieved(case, end, branch_open=True)


def test_a_closed_branch_needs_the_handoff_too() -> None:
    end = as_asked(THRESHOLD)
    assert not is_achieved(THRESHOLD, end, branch_open=False)
    handed = replace(end, handoffs=[Handoff.model_construct(reason="closed", choice=None)])
    assert is_achieved(THRESHOLD, handed, branch_open=False)


@pytest.mark.parametrize(("reason", "choice"), [("acc_euro_001", "callback"), (None, "realtime")])
def test_a_handoff_of_another_account_or_kind_is_not_what_was_asked(
    reason: str | None, choice: str
) -> None:
    handoff = Handoff.model_construct(reason=reason or LOCKED.source, choice=choice)
    assert not is_achieved(LOCKED, replace(NOTHING, handoffs=[handoff]), branch_open=True)
