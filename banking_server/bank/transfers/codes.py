"""Confirmation codes: how a transfer's code is derived, and a given one compared with it."""

import hmac

from banking_server.bank.rules import GivenCode


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does.

    Nothing secret has to be stored, and a repeated prepare gives the same code.
    """
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def compare_code(code_key: bytes, transfer_id: str, given: str | None) -> GivenCode:
    """Compare what a caller gave with the transfer's code; it may be any text, or nothing."""
    if given is None:
        return GivenCode.MISSING
    # As bytes: compare_digest refuses non-ASCII text, and callers send any text.
    expected = confirmation_code(code_key, transfer_id).encode()
    is_right = hmac.compare_digest(expected, given.encode(errors="surrogatepass"))
    return GivenCode.RIGHT if is_right else GivenCode.WRONG
