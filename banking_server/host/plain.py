"""How much of what somebody else wrote is shown at once to a person at a terminal."""

from typing import Final

from banking_server.text import quoted

LINE: Final = 400
"""Characters of somebody else's words that stand on one line of ours."""

NAME: Final = 128
"""Characters of a tool's name that are shown; MCP allows no more."""

SHOWN: Final = 4_000
"""Characters that are shown at once of what a call is made with."""


def quoted_name(name: str, length: int = NAME) -> str:
    """Return a tool's name in quotes, on one line, with `length` characters of it at most.

    No blank but a single space is left in it, so that it cannot be set apart from its quotes.
    """
    seen = " ".join(name.split())
    return quoted(seen if len(seen) <= length else f"{seen[: length - 1]}\u2026")
