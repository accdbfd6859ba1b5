"""Confirmation codes: how a transfer's code is derived, and a given one compared with it."""

import hmac
from collections.abc import Sequence

from banking_server.bank.rules import GivenCode


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does.

    Nothing secret has to be stored, and a repeated prepare gives the same code.
    """
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def compare_code(code_keys: Sequence[bytes], transfer_id: str, given: str | None) -> GivenCode:
    """Compare what a caller gave with the transfer's code under each of the keys.

    It may be any text, or nothing.
    """
    if given is None:
        return GivenCode.MISSING
    # As bytes: compare_digest refuses non-ASCII text, and callers send any text.
    code = given.encode(errors="surrogatepass")
    is_right = [
        hmac.compare_digest(confirmation_code(key, transfer_id).encode(), code) for key in code_keys
    ]
    return GivenCode.RIGHT if any(is_right) else GivenCode.WRONG
