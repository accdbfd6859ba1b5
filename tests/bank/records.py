"""Look at one record as its customer sees it, without a call: nothing of the bank does that."""

from datetime import datetime

from banking_server.bank.accounts import AccountView, view_account
from banking_server.bank.models import Account, Transfer
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers import TransferView, read_parties, view_transfer


async def find_account(
    bank: Bank, customer_id: str, account_id: str, now: datetime
) -> AccountView | None:
    """Return one of the customer's accounts. Not audited."""

    def look(tx: Transaction) -> AccountView | None:
        account = find_owned(tx, Account, account_id, customer_id)
        return None if account is None else view_account(tx, account, now)

    return await bank.read(look)


async def find_transfer(
    bank: Bank, customer_id: str, transfer_id: str, now: datetime
) -> TransferView | None:
    """Return one of the customer's transfers. Not audited."""

    def look(tx: Transaction) -> TransferView | None:
        transfer = find_owned(tx, Transfer, transfer_id, customer_id)
        if transfer is None:
            return None
        return view_transfer(transfer, read_parties(tx, transfer), now)

    return await bank.read(look)
