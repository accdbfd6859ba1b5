"""Makes text from others safe to show: shorter, and without invisible characters."""

import re
from typing import Final

_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f"
    r"\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)

UNSEEN: Final = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
"""Control characters, and characters that look blank or are invisible: tags, marks,
fillers, noncharacters.

The two joiners, U+200C and U+200D, are not included: Persian needs them.
"""

_BREAK: Final = re.compile(r"[\n\r\t]")


def cut(text: str, length: int) -> str:
    """Return a text of at most `length` characters, or its beginning and its length."""
    return text if len(text) <= length else f"{text[:length]}\u2026 ({len(text):,} characters)"


def is_blank(text: str) -> bool:
    """Return whether a text has only white space and invisible characters."""
    return not UNSEEN.sub("", text).strip()


def block(text: str, margin: str = "") -> str:
    """Return a text of a target for a terminal or a log: one line, and each further one indented.

    None of its lines begins with what the target wrote, so it can neither look like the suite's
    own nor give an order to the terminal or the CI system (`::error::`, `##[error]`).
    """
    lines = [printable(line, lines=False).strip() for line in text.splitlines()]
    return f"\n{margin}  | ".join(filter(None, lines))


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text with control and invisible characters as escapes, such as `\\u202e`.

    With `lines`, tabs and line ends stay as they are. `##[` becomes `## [`, or GitHub would obey.
    """
    text = UNSEEN.sub(
        lambda found: found[0] if lines and found[0] in "\n\t" else ascii(found[0])[1:-1], text
    )
    return text.replace("##[", "## [")


def one_line(text: str) -> str:
    """Return a text as one printable line.

    So a line break in a server's text cannot start a line that looks like our own.
    """
    parts = map(str.strip, _BREAK.split(text))
    return printable(" ".join(part for part in parts if part), lines=False)
