"""The two eras of the protocol, which differ in how a connection begins.

`LEGACY` revisions begin with an `initialize` handshake; from `MODERN` on, every request carries
its own version and capabilities, and `server/discover` says what the server is.
"""

from collections.abc import Mapping
from enum import StrEnum


class Era(StrEnum):
    """The protocol revision of each era, as in `--spec-version` and in reports."""

    MODERN = "2026-07-28"
    LEGACY = "2025-11-25"


def in_each_era(reasons: Mapping[Era, str]) -> str:
    """Return a reason for each era in one line, or a reason that all share once."""
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{era}: {why}" for era, why in reasons.items())
