"""Preparing a transfer: what is asked in which order, said, and reserved."""

import pytest

from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.codes import confirmation_code
from banking_server.bank.transfers.outcomes import Posted

from ..kit.words import DEPOSIT, EURO, PAYEE, RETIREMENT
from .support import (
    DAY,
    NOW,
    confirm,
    outcomes,
    prepare,
    prepared,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


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
        # What comes first is named first; a target that is missing comes last.
        ({"on": "x", "memo": "\x00", "target": "nobody"}, Argument.SCHEDULED_DATE),
        ({"source": DEPOSIT, "target": DEPOSIT}, Argument.TO_ACCOUNT_ID),
        ({"source": DEPOSIT, "target": EURO}, Argument.FROM_ACCOUNT_ID),
        ({"amount": "99999.00", "target": EURO}, Argument.TO_ACCOUNT_ID),
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


async def test_an_expired_transfer_is_replaced_once(bank: Bank, path: Location) -> None:
    expired = (await prepared(bank)).transfer.transfer_id
    later = NOW + DAY
    new = await prepared(bank, expired=expired, at=later)
    assert await prepared(bank, expired=expired, at=later) == new
    transfer_id = new.transfer.transfer_id
    assert isinstance(await confirm(bank, transfer_id, at=later), Posted)
    again = await prepare(bank, expired=expired, at=later)
    assert isinstance(again, Refused)
    assert (again.field, again.subject) == (Argument.EXPIRED_TRANSFER_ID, transfer_id)
    assert sql(path, "SELECT count(*) FROM transfer") == [(2,)]
    # Without it, or with other details, another transfer is meant.
    others = [await prepared(bank, at=later), await prepared(bank, "9", expired=expired, at=later)]
    assert len({new.transfer.transfer_id, *(each.transfer.transfer_id for each in others)}) == 3
    for unknown in ("tr_0", "\x00", "x" * 99):
        outcome = await prepare(bank, "8", expired=unknown, at=later)
        assert outcome == NotFound(Argument.EXPIRED_TRANSFER_ID, excerpt(unknown))


async def test_a_code_depends_on_the_key_and_the_transfer_only() -> None:
    # RFC 4226 truncation over HMAC-SHA256: held still, so that a restart changes no code.
    assert confirmation_code(b"key", "tr_1") == "389794"
    assert confirmation_code(b"key", "tr_2") != confirmation_code(b"key", "tr_1")
    assert confirmation_code(b"other", "tr_1") != confirmation_code(b"key", "tr_1")
