"""The ledger: writes postings, and reads what an account holds."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from banking_server.bank.models import TABLES, Account, Entry, Posting, PostingKind, Side, Transfer
from banking_server.bank.transaction import Statement, Transaction, has_status, insertion, value

logger = logging.getLogger(__name__)

CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""An entry further ahead of the clock is logged: servers' clocks differ."""


@dataclass(frozen=True)
class Funds:
    """What an account holds, in minor units: the sum of its entries, and what is reserved."""

    posted_minor: int
    reserved_minor: int

    @property
    def available_minor(self) -> int:
        """What can still be spent."""
        return self.posted_minor - self.reserved_minor


_ADD_ENTRY = insertion(Entry)


def add_posting(
    tx: Transaction,
    *,
    kind: PostingKind,
    description: str,
    posted_at: datetime,
    debit: Account,
    credit: Account,
    amount_minor: int,
    reserved_minor: int = 0,
    transfer_id: str | None = None,
) -> datetime:
    """Move `amount_minor` (above zero) from `debit` to `credit`: two entries, one posting.

    It updates both accounts' totals. `reserved_minor` is the amount that was pending for it on
    `debit`, and is released. Returns the time of posting: `posted_at`, or later if one of the
    accounts has a later entry, because an account's entries never go back in time.
    """
    earlier = [at for at in (debit.last_posted_at, credit.last_posted_at) if at is not None]
    at = max([posted_at, *earlier])
    if at - posted_at > CLOCK_TOLERANCE:
        logger.warning(
            "The clock says %s, but %s and %s have entries up to %s: the posting gets that date.",
            *(posted_at, debit.account_id, credit.account_id, at),
        )
    posting = Posting(kind=kind, description=description, posted_at=at, transfer_id=transfer_id)
    tx.add(posting)
    tx.change(
        debit,
        debits_posted_minor=debit.debits_posted_minor + amount_minor,
        debits_pending_minor=debit.debits_pending_minor - reserved_minor,
        last_posted_at=at,
    )
    tx.change(
        credit, credits_posted_minor=credit.credits_posted_minor + amount_minor, last_posted_at=at
    )

    def add_entry(side: Side, account: Account, signed_minor: int) -> None:
        tx.run(
            _ADD_ENTRY,
            posting_id=posting.posting_id,
            side=side,
            account_id=account.account_id,
            amount_minor=signed_minor,
            currency=account.currency,
            posted_at=at,
            debits_after_minor=account.debits_posted_minor,
            credits_after_minor=account.credits_posted_minor,
        )

    # The debit first: a trigger refuses a credit without it.
    add_entry("debit", debit, -amount_minor)
    add_entry("credit", credit, amount_minor)
    return at


_transfers = TABLES[Transfer].c
_OVERDUE = Statement(
    sa.select(sa.func.sum(_transfers.amount_minor)).where(
        _transfers.from_account_id == sa.bindparam("account_id"),
        has_status(Transfer, "pending"),
        _transfers.expires_at <= sa.bindparam("now"),
    ),
    value,
)


def read_funds(tx: Transaction, account: Account, now: datetime) -> Funds:
    """Return the funds of the account at `now`.

    Reserved is the sum of the pending transfers out of it that have not expired by then; a
    scheduled transfer reserves nothing.
    """
    posted = account.credits_posted_minor - account.debits_posted_minor
    if account.debits_pending_minor == 0:
        return Funds(posted, 0)
    # They still count as pending until somebody marks them.
    overdue = tx.first(_OVERDUE, account_id=account.account_id, now=now)
    return Funds(posted, account.debits_pending_minor - int(overdue or 0))
