"""The ledger: how a posting is written and how balances are read from it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.models import Account, Entry, Posting, PostingKind, Side, Transfer


@dataclass(frozen=True)
class Funds:
    """What an account holds, in minor units: the sum of its entries, and what is spoken for."""

    posted_minor: int
    reserved_minor: int

    @property
    def available_minor(self) -> int:
        """What can still be spent."""
        return self.posted_minor - self.reserved_minor


async def add_posting(
    session: AsyncSession,
    *,
    kind: PostingKind,
    description: str,
    posted_at: datetime,
    debit: Account,
    credit: Account,
    amount_minor: int,
    transfer_id: str | None = None,
) -> None:
    """Move `amount_minor` (above zero) from `debit` to `credit`: two entries, one posting."""
    posting = Posting(
        kind=kind, description=description, posted_at=posted_at, transfer_id=transfer_id
    )
    session.add(posting)
    await session.flush()

    def entry(side: Side, account: Account, signed_minor: int) -> Entry:
        return Entry(
            posting_id=posting.posting_id,
            side=side,
            account_id=account.account_id,
            amount_minor=signed_minor,
            currency=account.currency,
        )

    # The debit first: a trigger refuses a credit without it.
    session.add_all([entry("debit", debit, -amount_minor), entry("credit", credit, amount_minor)])


async def read_funds(
    session: AsyncSession, account_ids: Collection[str], now: datetime
) -> dict[str, Funds]:
    """Return the funds of each account at `now`.

    Reserved is the sum of the pending transfers out of it that have not expired by then; a
    scheduled transfer reserves nothing.
    """
    posted = await session.exec(
        select(Entry.account_id, func.sum(col(Entry.amount_minor)))
        .where(col(Entry.account_id).in_(account_ids))
        .group_by(col(Entry.account_id))
    )
    reserved = await session.exec(
        select(Transfer.from_account_id, func.sum(col(Transfer.amount_minor)))
        .where(
            col(Transfer.from_account_id).in_(account_ids),
            col(Transfer.status) == "pending",
            col(Transfer.expires_at) > now,
        )
        .group_by(col(Transfer.from_account_id))
    )
    posted_by_account, reserved_by_account = dict(posted.all()), dict(reserved.all())
    return {
        account_id: Funds(
            posted_by_account.get(account_id, 0), reserved_by_account.get(account_id, 0)
        )
        for account_id in account_ids
    }
