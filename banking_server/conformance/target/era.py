"""The two eras of the protocol, which differ in how a connection begins.

`LEGACY` revisions begin with an `initialize` handshake; from `MODERN` on, every request carries
its own version and capabilities, and `server/discover` says what the server is.
"""

from enum import StrEnum


class Era(StrEnum):
    """The protocol revision of each era, as in `--spec-version` and in reports."""

    MODERN = "2026-07-28"
    LEGACY = "2025-11-25"
