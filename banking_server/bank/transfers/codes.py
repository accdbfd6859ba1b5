"""What stands for the customer's yes: a transfer's code and a view's secret, how they are derived,
and how a given one is compared with them.

Nothing secret has to be stored, and a repeated prepare gives the same.
"""

import hmac

from banking_server.bank.models import Transfer
from banking_server.bank.storage import Bank


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does."""
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def is_code(bank: Bank, transfer: Transfer, given: str) -> bool:
    """Whether a caller gave the transfer's code under one of the keys; it may be any text."""
    codes = [confirmation_code(key, transfer.transfer_id) for key in bank.code_keys]
    return _is_one_of(codes, given)


def view_secret(bank: Bank, transfer: Transfer) -> str | None:
    """Return what confirms the transfer from a view that shows it to its customer, 256 bits.

    It is bound to the customer, the transfer, its expiry, and to how often the transfer was to be
    confirmed and was not: it is good for one attempt, whatever comes of that. There is none where
    only the bank's desk gives out what confirms.
    """
    return None if bank.rules.codes == "desk" else _secret(bank.code_key, transfer)


def is_view_secret(bank: Bank, transfer: Transfer, given: str) -> bool:
    """Whether a caller gave the transfer's secret under one of the keys; it may be any text.

    Where no secret is given out, no text is right.
    """
    is_right = _is_one_of([_secret(key, transfer) for key in bank.code_keys], given)
    return bank.rules.codes != "desk" and is_right


def _secret(code_key: bytes, transfer: Transfer) -> str:
    bound_to = (
        "view",
        transfer.customer_id,
        transfer.transfer_id,
        transfer.expires_at.isoformat(),
        str(transfer.declines),
    )
    return hmac.digest(code_key, "\n".join(bound_to).encode(), "sha256").hex()


def _is_one_of(expected: list[str], given: str) -> bool:
    # As bytes: compare_digest refuses non-ASCII text, and callers send any text.
    text = given.encode(errors="surrogatepass")
    is_equal = [hmac.compare_digest(each.encode(), text) for each in expected]
    return any(is_equal)
