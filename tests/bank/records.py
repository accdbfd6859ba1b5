"""Look at one record as its customer sees it, without a call: nothing of the bank does that."""

from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.accounts import AccountView, view_account
from banking_server.bank.models import Account, Transfer
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transfers import TransferView, view_transfer


async def find_account(
    bank: Bank, customer_id: str, account_id: str, now: datetime
) -> AccountView | None:
    """Return one of the customer's accounts. Not audited."""

    async def work(session: AsyncSession) -> AccountView | None:
        account = await find_owned(session, Account, account_id, customer_id)
        return None if account is None else await view_account(session, account, now)

    return await bank.read(work)


async def find_transfer(
    bank: Bank, customer_id: str, transfer_id: str, now: datetime
) -> TransferView | None:
    """Return one of the customer's transfers. Not audited."""

    async def work(session: AsyncSession) -> TransferView | None:
        transfer = await find_owned(session, Transfer, transfer_id, customer_id)
        return None if transfer is None else await view_transfer(session, transfer, now)

    return await bank.read(work)
