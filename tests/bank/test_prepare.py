"""Preparing a transfer: what is asked in which order, said, and reserved."""

from datetime import date

import pytest

from banking_server.bank.accounts import (
    AccountView,
    Balance,
    debit_accounts,
    get_balance,
    payable_accounts,
)
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import (
    AccountLocked,
    Prepared,
    ToAccountMissing,
    TransferView,
    confirmation_code,
    record_locked_attempt,
)

from ..kit.words import DEPOSIT, EURO, EVERYDAY, LOCKED, PAYEE, RETIREMENT
from .records import find_transfer
from .support import (
    BAD_IDS,
    DAY,
    FOREIGN,
    MINUTE,
    NOW,
    call,
    outcomes,
    prepare,
    prepared,
    set_flag,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def available(bank: Bank, account_id: str = EVERYDAY) -> int:
    balance = await get_balance(bank, call("balance"), account_id)
    assert isinstance(balance, Balance)
    return balance.available_minor


async def test_a_prepared_transfer_is_pending_and_reserves(bank: Bank, path: Location) -> None:
    outcome = await prepare(bank, "25.50", target=PAYEE, on="2026-03-10", memo="March")
    assert isinstance(outcome, Prepared)
    transfer_id = outcome.transfer.transfer_id
    assert outcome.transfer == TransferView(
        transfer_id=transfer_id,
        from_account_id=EVERYDAY,
        from_account_name="Everyday Checking",
        to_account_id=PAYEE,
        to_account_name="Rent Payments",
        to_account_holder="Fictional Homes Ltd",
        amount_minor=2_550,
        currency="USD",
        scheduled_date=date(2026, 3, 10),
        memo="March",
        status="pending",
        reason=None,
        approval="none",
        created_at=NOW,
        expires_at=NOW + 10 * MINUTE,
        posted_at=None,
    )
    assert transfer_id.startswith("tr_")
    assert len(outcome.code) == 6
    assert outcome.code.isdigit()
    assert await available(bank) == 185_040 - 2_550
    assert await find_transfer(bank, "CUST001", transfer_id, NOW) == outcome.transfer
    assert await find_transfer(bank, "CUST002", transfer_id, NOW) is None
    overdue = await find_transfer(bank, "CUST001", transfer_id, NOW + DAY)
    assert overdue is not None
    assert overdue.status == "expired"
    assert outcomes(path)[0] == ("prepare", "prepared", transfer_id)


async def test_a_lock_is_answered_before_anything_else(bank: Bank, path: Location) -> None:
    for target, amount in ((None, "1"), (LOCKED, "NaN"), (PAYEE, "-1"), ("\ud800", "1e15")):
        outcome = await prepare(bank, amount, source=LOCKED, target=target, on="never", memo="\x00")
        assert isinstance(outcome, AccountLocked)
        assert (outcome.account.account_name, outcome.account.account_id) == (
            "Primary Checking",
            LOCKED,
        )
    assert sql(path, "SELECT count(*) FROM transfer") == [(0,)]


async def test_a_locked_attempt_is_reported_by_the_account_alone(
    bank: Bank, path: Location
) -> None:
    set_flag(path, FOREIGN, "is_locked", True)
    for account_id in (EVERYDAY, *BAD_IDS):
        assert await record_locked_attempt(bank, call(), account_id) is None
    assert outcomes(path) == []
    the_call = call("prepare")
    outcome = await record_locked_attempt(bank, the_call, LOCKED)
    assert outcome == await prepare(bank, source=LOCKED)
    assert the_call.recorded
    assert outcomes(path) == [("prepare", "account_locked", LOCKED)] * 2


def named(accounts: list[AccountView]) -> tuple[str, ...]:
    return tuple(f"{each.account_id} ({each.account_name})" for each in accounts)


@pytest.mark.on_each
async def test_unknown_and_foreign_accounts_are_the_same(bank: Bank, path: Location) -> None:
    set_flag(path, FOREIGN, "is_locked", True)
    can_pay = named(await debit_accounts(bank, "CUST001", NOW))
    can_be_paid = named(await payable_accounts(bank, "CUST001", EVERYDAY, NOW) or [])
    for account_id in BAD_IDS:
        assert await prepare(bank, source=account_id, target=None) == NotFound(
            Argument.FROM_ACCOUNT_ID, excerpt(account_id), can_pay
        )
        assert await prepare(bank, target=account_id) == NotFound(
            Argument.TO_ACCOUNT_ID, excerpt(account_id), can_be_paid
        )
    assert {event[1:] for event in outcomes(path)} == {("not_found", None)}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"amount": "0.001"}, Argument.AMOUNT),
        ({"amount": "1850.41"}, Argument.AMOUNT),
        ({"on": "2026-02-30"}, Argument.SCHEDULED_DATE),
        ({"memo": "a\nb"}, Argument.MEMO),
        ({"source": RETIREMENT}, Argument.FROM_ACCOUNT_ID),
        ({"source": PAYEE}, Argument.FROM_ACCOUNT_ID),
        ({"target": DEPOSIT}, Argument.TO_ACCOUNT_ID),
        ({"source": EURO}, Argument.TO_ACCOUNT_ID),
        # What comes first is named first; a target that is missing comes last.
        ({"amount": "0", "on": "x", "memo": "\x00", "target": "nobody"}, Argument.AMOUNT),
        ({"on": "x", "memo": "\x00", "target": "nobody"}, Argument.SCHEDULED_DATE),
        ({"source": DEPOSIT, "target": DEPOSIT}, Argument.TO_ACCOUNT_ID),
        ({"source": DEPOSIT, "target": EURO}, Argument.FROM_ACCOUNT_ID),
        ({"amount": "99999.00", "target": EURO}, Argument.TO_ACCOUNT_ID),
        ({"amount": "0", "target": None}, Argument.AMOUNT),
        ({"source": DEPOSIT, "target": None}, Argument.FROM_ACCOUNT_ID),
    ],
)
async def test_what_is_refused_names_its_field_and_stores_nothing(
    bank: Bank, path: Location, bad: dict[str, str], field: Argument
) -> None:
    outcome = await prepare(bank, **bad)
    assert isinstance(outcome, Refused)
    assert outcome.field == field
    assert sql(path, "SELECT count(*) FROM transfer") == [(0,)]
    assert outcomes(path) == [("prepare", "refused", None)]


async def test_a_missing_target_is_asked_for(bank: Bank, path: Location) -> None:
    outcome = await prepare(bank, target=None)
    assert isinstance(outcome, ToAccountMissing)
    assert outcome.account.account_id == EVERYDAY
    assert outcomes(path) == [("prepare", "to_account_missing", EVERYDAY)]


async def test_the_same_again_is_the_one_that_is_pending(bank: Bank, path: Location) -> None:
    # More than half of what is there: a second reservation would not fit.
    first = await prepare(bank, "1000.00", memo="m", on="2026-03-09")
    again = await prepare(bank, "1000.0", memo="m", on="2026-03-09", at=NOW + 9 * MINUTE)
    assert isinstance(again, Prepared)
    assert (again.transfer, again.code) == (first.transfer, first.code)
    # Another memo is another transfer; the model has all else that may differ.
    small = await prepared(bank, "10.00")
    assert (await prepared(bank, "10.00", memo="m")).transfer != small.transfer
    assert sql(path, "SELECT count(*) FROM transfer") == [(3,)]


async def test_a_code_depends_on_the_key_and_the_transfer_only() -> None:
    # RFC 4226 truncation over HMAC-SHA256: held still, so that a restart changes no code.
    assert confirmation_code(b"key", "tr_1") == "389794"
    assert confirmation_code(b"key", "tr_2") != confirmation_code(b"key", "tr_1")
    assert confirmation_code(b"other", "tr_1") != confirmation_code(b"key", "tr_1")
