"""The rules by themselves: no database, no clock."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from banking_server.bank.models import Account
from banking_server.bank.rules import (
    Argument,
    Refused,
    Rules,
    TransferDetails,
    check_available,
    check_details,
    check_parties,
    check_reason,
    check_required_text,
    compliance_rule,
    excerpt,
    is_branch_open,
    is_debit_blocked,
    is_expired,
    needs_approval,
)

RULES = Rules()
TODAY = date(2026, 3, 4)


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


def check(**given_: object) -> Refused | TransferDetails:
    details: dict[str, object] = {"amount": Decimal(5), "scheduled_date": None, "memo": None}
    return check_details(RULES, today=TODAY, **(details | given_))  # type: ignore[arg-type]


# --- the four escalations


def test_a_lock_blocks_debits() -> None:
    assert is_debit_blocked(account(is_locked=True))
    assert not is_debit_blocked(account())


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
        ("2026-03-06T12:00:00+00:00", True),  # Friday
        ("2026-03-07T12:00:00+00:00", False),  # Saturday
        ("2026-03-08T12:00:00+00:00", False),  # Sunday
        ("2026-03-09T12:00:00+00:00", True),  # Monday
        ("2026-03-04T09:00:00+02:00", False),  # 07:00 UTC
        ("2026-03-09T01:00:00+14:00", False),  # still Sunday in UTC
    ],
)
def test_branch_hours(at: str, is_open: bool) -> None:
    assert is_branch_open(RULES, datetime.fromisoformat(at)) is is_open


def test_a_transfer_expires_at_its_time_not_after() -> None:
    at = datetime(2026, 3, 4, tzinfo=UTC)
    assert is_expired(at, at)
    assert not is_expired(at, at - timedelta(microseconds=1))
    assert is_expired(at, at.astimezone(timezone(timedelta(hours=5))))


def test_the_compliance_threshold_is_inclusive_and_for_external_payees_only() -> None:
    payee = account(account_type="external")
    assert compliance_rule(RULES, amount_minor=300_000, to_account=payee) == "external-payee-3000"
    assert compliance_rule(RULES, amount_minor=299_999, to_account=payee) is None
    assert compliance_rule(RULES, amount_minor=300_000, to_account=account()) is None
    odd = Rules(compliance_threshold_minor=12_345)
    assert compliance_rule(odd, amount_minor=12_345, to_account=payee) == "external-payee-123.45"


# --- the details of a transfer


def test_good_details() -> None:
    assert check() == TransferDetails(500, None, None)
    assert check(scheduled_date="2026-03-05", memo="Rent 🏠") == TransferDetails(
        500, date(2026, 3, 5), "Rent 🏠"
    )


def test_today_means_immediately() -> None:
    assert check(scheduled_date="2026-03-04") == TransferDetails(500, None, None)


def test_a_year_ahead_is_the_furthest() -> None:
    assert check(scheduled_date="2027-03-04") == TransferDetails(500, date(2027, 3, 4), None)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "tomorrow", "2026-3-5", "20260305", "2026-W10-4", "2026-03-05T10:00:00"),
        *("2026-02-30", "2026-13-01", "0000-01-01", "2026-03-03", "2027-03-05", "9999-12-31"),
        *("2026-03-05\n", "２０２６-03-05", "\ud800", "2026-03-05" + "0" * 1_000_000),  # noqa: RUF001
    ],
)
def test_bad_dates_are_refused_by_name(text: str) -> None:
    refused = check(scheduled_date=text)
    assert isinstance(refused, Refused)
    assert refused.field == Argument.SCHEDULED_DATE
    assert excerpt(text, 30) in refused.message
    assert len(refused.message) < 200
    refused.message.encode()


@pytest.mark.parametrize("memo", ["", "   ", "\u00a0"])
def test_a_blank_memo_is_none(memo: str) -> None:
    assert check(memo=memo) == TransferDetails(500, None, None)


def test_a_memo_of_140_characters_fits() -> None:
    assert check(memo="é" * 140) == TransferDetails(500, None, "é" * 140)


@pytest.mark.parametrize(
    "memo",
    [
        *("x" * 141, "x" * 1_000_000, "a\nb", "a\tb", "\x00", "\x7f", "\x85", "\u2028", "\u2029"),
        *("\u202e", "\u2066", "\ud800", "\udfff"),
    ],
)
def test_bad_memos_are_refused_by_name(memo: str) -> None:
    refused = check(memo=memo)
    assert isinstance(refused, Refused)
    assert refused.field == "memo"
    refused.message.encode()


@given(st.text(alphabet=st.characters(), max_size=150))
def test_any_text_is_refused_or_fit_to_store(text: str) -> None:
    for outcome in (check(memo=text), check(scheduled_date=text)):
        stored = outcome.memo if isinstance(outcome, TransferDetails) else outcome.message
        (stored or "").encode()


def test_the_amount_is_checked_first() -> None:
    refused = check(amount=Decimal("NaN"), scheduled_date="x", memo="\x00")
    assert isinstance(refused, Refused)
    assert refused.field == "amount"


# --- the accounts


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [
        ({}, {"account_id": "acc_a"}, Argument.TO_ACCOUNT_ID),
        ({"can_transfer_from": False}, {}, Argument.FROM_ACCOUNT_ID),
        ({}, {"can_transfer_to": False}, Argument.TO_ACCOUNT_ID),
        ({}, {"currency": "EUR"}, Argument.TO_ACCOUNT_ID),
    ],
)
def test_parties_that_do_not_fit(
    source: dict[str, object], target: dict[str, object], field: str
) -> None:
    refused = check_parties(account(**source), account(**({"account_id": "acc_b"} | target)))  # type: ignore[arg-type]
    assert isinstance(refused, Refused)
    assert refused.field == field


def test_a_locked_account_may_be_credited() -> None:
    assert check_parties(account(), account("acc_b", is_locked=True)) is None


def test_funds_may_be_used_up_but_not_more() -> None:
    assert check_available(account(), amount_minor=500, available_minor=500) is None
    refused = check_available(account(), amount_minor=501, available_minor=500)
    assert refused is not None
    assert refused.field == "amount"
    assert "5.01 USD is more than the 5.00 USD available" in refused.message


# --- text


def test_reasons() -> None:
    assert check_reason(RULES, None, default="d") == "d"
    assert check_reason(RULES, "  ", default="d") == "d"
    assert check_reason(RULES, "x" * 500, default="d") == "x" * 500
    for bad in ("x" * 501, "a\x00", "\ud800"):
        refused = check_reason(RULES, bad, default="d")
        assert isinstance(refused, Refused)
        assert refused.field == "reason"
    assert check_required_text(RULES, "manager", "Mo") is None
    for bad in ("", " ", "\n", "x" * 501):
        refused = check_required_text(RULES, "manager", bad)
        assert refused is not None
        assert refused.field == "manager"


@given(st.text(alphabet=st.characters(), max_size=200))
def test_an_excerpt_can_always_be_printed(text: str) -> None:
    shown = excerpt(text)
    assert len(shown) <= 60
    assert shown.isprintable() or not shown
    shown.encode()
    if text.isprintable() and len(text) <= 60:
        assert shown == text
