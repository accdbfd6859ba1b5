"""How much of a text from a server or a model is shown to a person at a terminal."""

from typing import Final

from tool_chaining.text import one_line, quoted

LINE: Final = 400
"""The most characters of such a text in one of our lines."""

NAME: Final = 128
"""The most characters of a tool's name; MCP allows no more."""

SHOWN: Final = 4_000
"""The most characters of such a text by itself, for example a call's arguments."""


def quoted_name(name: str) -> str:
    """Return a tool's name in quotes, on one line, with `NAME` characters of it at most.

    Runs of blanks become one space, so that the text cannot look separate from its quotes.
    """
    seen = " ".join(name.split())
    return quoted(seen if len(seen) <= NAME else f"{seen[: NAME - 1]}\u2026")


def sentence(remark: str) -> str:
    """Return a remark as a sentence on one line, with a capital letter and a full stop."""
    line = one_line(remark)
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '?')) else '.'}"
