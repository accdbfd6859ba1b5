"""What somebody else wrote, made fit to be shown: nothing in it steers a terminal.

Whatever leaves for a terminal goes through `printable`, the errors of this program included: they
repeat what servers, their HTTP and models say.
"""

import json
import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline, C1 included
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
"""What steers a terminal, turns text round, or is not seen: tags, blanks without a width.

The two joiners, U+200C and U+200D, are not among it: without them Persian is misspelt.
"""

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""What is seen as a blank, or not at all, though it counts as printable."""

_ON_ONE_LINE: Final = str.maketrans("\n\t", "  ")

LINE: Final = 400
"""Characters of somebody else's words that stand on one line of ours."""


NAME: Final = 128
"""Characters of a tool's name that are shown; MCP allows no more."""

SHOWN: Final = 4_000
"""Characters that are shown at once of what a call is made with."""


def printable(text: str) -> str:
    """Return a text without any character that could steer the terminal, or that is not seen."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, length: int | None = None) -> str:
    """Return a text, made printable, on one line, and no longer than `length` characters.

    So no line break of a server's can begin what looks like a line of ours.
    """
    line = printable(text).translate(_ON_ONE_LINE).strip()
    return line if length is None or len(line) <= length else line[: length - 1] + "\u2026"


def quoted(name: str) -> str:
    """Return a tool's name in quotes, on one line, and no longer than `NAME` characters.

    No blank but a single space is left in it, so that it cannot be set apart from its quotes.
    """
    seen = "".join(
        sign if sign.isprintable() and sign not in _BLANK else "\N{REPLACEMENT CHARACTER}"
        for sign in one_line(name, NAME)
    )
    return json.dumps(" ".join(seen.split()), ensure_ascii=False)


def cut(text: str, length: int = SHOWN) -> str:
    """Return a text that is no longer than `length` characters, or its beginning and its length."""
    return text if len(text) <= length else f"{text[:length]}\u2026 [{len(text):,} characters]"
