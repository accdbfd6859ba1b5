"""What stands for the customer's yes: a transfer's code and a view's secret, how they are derived,
and how a given one is compared with them.

Nothing secret has to be stored, and a repeated prepare gives the same.
"""

import hmac
from collections.abc import Sequence

from banking_server.bank.models import Transfer
from banking_server.bank.rules import Rules


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does."""
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def is_code(code_keys: Sequence[bytes], transfer_id: str, given: str) -> bool:
    """Whether a caller gave the transfer's code under one of the keys; it may be any text."""
    # As bytes: compare_digest refuses non-ASCII text, and callers send any text.
    code = given.encode(errors="surrogatepass")
    is_right = [
        hmac.compare_digest(confirmation_code(key, transfer_id).encode(), code) for key in code_keys
    ]
    return any(is_right)


def view_secret(rules: Rules, code_key: bytes, transfer: Transfer) -> str | None:
    """Return what confirms the transfer from a view that shows it to its customer, 256 bits.

    It is bound to the customer, the transfer, its expiry, and to how often the transfer was to be
    confirmed and was not: it is good for one attempt, whatever comes of that. There is none where
    only the bank's desk gives out what confirms.
    """
    return None if rules.codes == "desk" else _secret(code_key, transfer)


def _secret(code_key: bytes, transfer: Transfer) -> str:
    bound_to = (
        "view",
        transfer.customer_id,
        transfer.transfer_id,
        transfer.expires_at.isoformat(),
        str(transfer.declines),
    )
    return hmac.digest(code_key, "\n".join(bound_to).encode(), "sha256").hex()


def is_view_secret(
    rules: Rules, code_keys: Sequence[bytes], transfer: Transfer, given: str
) -> bool:
    """Whether a caller gave the transfer's secret under one of the keys; it may be any text.

    Where there is none, nothing is right.
    """
    secret = given.encode(errors="surrogatepass")
    is_right = [hmac.compare_digest(_secret(key, transfer).encode(), secret) for key in code_keys]
    return rules.codes != "desk" and any(is_right)
