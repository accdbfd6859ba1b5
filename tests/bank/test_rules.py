"""The rules and money by themselves: no database, no clock."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from itertools import product
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from banking_server.bank.models import Account, ApprovalState, Transfer, TransferStatus
from banking_server.bank.money import MAX_MINOR, InvalidAmount, format_money, to_decimal, to_minor
from banking_server.bank.rules import (
    Argument,
    Decision,
    Refused,
    Rules,
    TooMany,
    compliance_rule,
    decide_confirmation,
    is_branch_open,
    may_be_asked_to_confirm,
    needs_approval,
)

pytestmark = pytest.mark.quick

RULES = Rules()


def account(account_id: str = "acc_a", **fields: object) -> Account:
    return Account.model_validate(
        {
            "account_id": account_id,
            "customer_id": "CUST001",
            "account_name": "An Account",
            "account_type": "checking",
            "can_transfer_from": True,
            "can_transfer_to": True,
            "currency": "USD",
            **fields,
        }
    )


# --- the four escalations


def test_the_approval_threshold_is_exclusive() -> None:
    assert not needs_approval(RULES, 1_000_000)
    assert needs_approval(RULES, 1_000_001)


@pytest.mark.parametrize(
    ("at", "is_open"),
    [
        ("2026-03-04T07:59:59.999999+00:00", False),
        ("2026-03-04T08:00:00+00:00", True),
        ("2026-03-04T17:59:59.999999+00:00", True),
        ("2026-03-04T18:00:00+00:00", False),
        ("2026-03-07T12:00:00+00:00", False),  # Saturday
        ("2026-03-09T12:00:00+00:00", True),  # Monday
        ("2026-03-09T01:00:00+14:00", False),  # still Sunday in UTC
    ],
)
def test_branch_hours(at: str, is_open: bool) -> None:
    assert is_branch_open(RULES, datetime.fromisoformat(at)) is is_open


def test_the_compliance_threshold_is_inclusive_and_for_external_payees_only() -> None:
    payee = account(account_type="external")
    assert compliance_rule(RULES, amount_minor=300_000, to_account=payee) == "external-payee-3000"
    assert compliance_rule(RULES, amount_minor=299_999, to_account=payee) is None
    assert compliance_rule(RULES, amount_minor=300_000, to_account=account()) is None
    odd = Rules(compliance_threshold_minor=12_345)
    assert compliance_rule(odd, amount_minor=12_345, to_account=payee) == "external-payee-123.45"


# --- confirming a transfer


NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
"""A Wednesday morning."""


def transfer(**fields: object) -> Transfer:
    return Transfer.model_validate(
        {
            "transfer_id": "tr_1",
            "customer_id": "CUST001",
            "from_account_id": "acc_a",
            "to_account_id": "acc_b",
            "amount_minor": 500,
            "currency": "USD",
            "created_at": NOW,
            "expires_at": NOW + timedelta(minutes=10),
            **fields,
        }
    )


def decide(**given_: object) -> Decision | Refused | TooMany:
    """Decide about a pending transfer of 5.00, all of it reserved, with the customer's yes."""
    facts: dict[str, object] = {
        "transfer": transfer(),
        "from_account": account("acc_a"),
        "to_account": account("acc_b"),
        "available_minor": 0,
        "yes_after_declines": 0,
        "code_is_right": None,
        "recent_wrong_codes": 0,
        "now": NOW,
        **given_,
    }
    return decide_confirmation(RULES, **facts)  # type: ignore[arg-type]


LATE = NOW + timedelta(minutes=10)
LOCKED = account("acc_a", is_locked=True)
LARGE = transfer(approval="required")
CANNOT_PAY = account("acc_a", can_transfer_from=False)
CANNOT_BE_PAID = account("acc_b", can_transfer_to=False)


@pytest.mark.parametrize(
    ("given_", "decision"),
    [
        # Which comes first: status, lock, manager, code.
        ({"from_account": LOCKED, "now": LATE}, Decision.NOT_PENDING),
        ({"from_account": LOCKED, "transfer": LARGE}, Decision.DEBIT_BLOCKED),
        ({"transfer": LARGE, "code_is_right": False}, Decision.MANAGER_MUST_DECIDE),
        # After too many wrong codes a yes is still taken; `test_limits` has what is not.
        ({"recent_wrong_codes": 15}, Decision.POST),
        ({"recent_wrong_codes": 15, "yes_after_declines": None}, Decision.CUSTOMER_MUST_AGREE),
        # A question takes one answer: a no since it was asked stands, whatever else is given.
        ({"transfer": transfer(declines=1)}, Decision.DECLINED_SINCE),
        ({"transfer": transfer(declines=1), "code_is_right": True}, Decision.DECLINED_SINCE),
        ({"transfer": transfer(declines=1), "code_is_right": False}, Decision.COUNT_WRONG_CODE),
        ({"transfer": transfer(declines=2), "yes_after_declines": 2}, Decision.POST),
        # Time: until the end, not at it; only what is pending expires.
        ({"now": LATE - timedelta(microseconds=1)}, Decision.POST),
        ({"now": LATE, "transfer": LARGE}, Decision.NOT_PENDING),
        # The date: after today is scheduled, today is posted.
        ({"transfer": transfer(scheduled_date=date(2026, 3, 5))}, Decision.SCHEDULE),
        ({"transfer": transfer(scheduled_date=date(2026, 3, 4))}, Decision.POST),
        # What an account allows comes after the code.
        ({"from_account": CANNOT_PAY, "code_is_right": False}, Decision.COUNT_WRONG_CODE),
        # A lock on the account that is paid stops nothing.
        ({"to_account": account("acc_b", is_locked=True)}, Decision.POST),
    ],
)
def test_the_decision_on_a_confirmation(given_: dict[str, object], decision: Decision) -> None:
    """What the model of `test_state_machine` does not decide, or seldom comes to."""
    assert decide(**given_) == decision


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"from_account": CANNOT_PAY}, Argument.FROM_ACCOUNT_ID),
        ({"to_account": CANNOT_BE_PAID}, Argument.TO_ACCOUNT_ID),
        ({"available_minor": -1}, Argument.AMOUNT),
    ],
)
def test_a_confirmation_is_refused_if_an_account_no_longer_allows_it(
    given_: dict[str, object], field: Argument
) -> None:
    refused = decide(**given_)
    assert isinstance(refused, Refused)
    assert (refused.field, refused.subject) == (field, "tr_1")


def test_the_customer_is_asked_exactly_if_a_yes_would_post() -> None:
    for status, approval, locked in product(
        get_args(TransferStatus), get_args(ApprovalState), (False, True)
    ):
        stands = transfer(status=status, approval=approval)
        source = account(is_locked=locked)
        expected = status == "pending" and approval not in ("required", "requested") and not locked
        assert may_be_asked_to_confirm(stands, source, NOW) is expected
        assert (decide(transfer=stands, from_account=source) == Decision.POST) is expected


# --- text


# --- money: exact, or refused

CENT, MOST = Decimal("0.01"), Decimal("999999999.99")


@given(st.decimals() | st.decimals(CENT, MOST, places=2))
@example(Decimal("5.1000000000000000000000000000000000000"))
@example(CENT)
def test_amounts_are_exact_or_refused(amount: Decimal) -> None:
    try:
        minor = to_minor(amount)
    except InvalidAmount:
        assert not amount.is_finite() or not CENT <= amount <= MOST or amount % CENT
        return
    assert Decimal(minor) / 100 == amount
    assert 1 <= minor <= MAX_MINOR


def test_the_decimal_context_does_not_change_amounts() -> None:
    with localcontext() as context:
        context.prec = 3
        assert to_minor(Decimal("999999999.99")) == MAX_MINOR
        assert to_decimal(MAX_MINOR) == Decimal("999999999.99")


def test_money_is_formatted_with_its_currency() -> None:
    shown = [format_money(minor, "USD") for minor in (123_450, 0, 5, -123_450)]
    assert shown == ["1,234.50 USD", "0.00 USD", "0.05 USD", "-1,234.50 USD"]
