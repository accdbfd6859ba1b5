"""Somebody else's text, made fit to be shown: shorter, and with nothing in it that is not seen."""

import json
import re
from typing import Final

_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f"
    r"\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)

CONTROL: Final = re.compile(f"[{_CONTROLS}]")
"""What steers a terminal, ends a line or turns text round, and half of a pair of surrogates.

The `DIRECTION_MARKS` are not among it: they belong to ordinary Arabic and Hebrew.
"""

DIRECTION_MARKS: Final = frozenset("\u061c\u200e\u200f")
"""What gives the text around it a direction. The title of a directive has none (TC-S-27)."""

_UNSEEN: Final = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
"""The same, and what is seen as a blank or not at all: tags, marks, fillers, no characters.

The two joiners, U+200C and U+200D, are not among it: without them Persian is misspelt.
"""

_BREAK: Final = re.compile(r"[\n\r\t]")


def cut(text: str, length: int) -> str:
    """Return a text that is no longer than `length` characters, or its beginning and its length."""
    return text if len(text) <= length else f"{text[:length]}\u2026 ({len(text):,} characters)"


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text in which what steers a terminal or is not seen is written out, as `\\u202e`.

    Tabs and ends of lines stay as they are where the text may have several `lines`.
    """
    return _UNSEEN.sub(
        lambda found: found[0] if lines and found[0] in "\n\t" else ascii(found[0])[1:-1], text
    )


def one_line(text: str, length: int | None = None) -> str:
    """Return a text, made printable, on one line, and no longer than `length` characters.

    So no line break in somebody else's words can begin what looks like a line of ours.
    """
    parts = map(str.strip, _BREAK.split(text))
    line = printable(" ".join(part for part in parts if part), lines=False)
    return line if length is None or len(line) <= length else f"{line[: length - 1]}\u2026"


def server_ended(errors: str, how: str = "ended") -> str:
    """Say that a server ended where an answer was awaited, as all three programs say it.

    `errors` is what it wrote last to its standard error, and `how` what is known of its end.
    """
    words = one_line(errors, 400)
    wrote = f"; what it wrote last to its standard error: {words}" if words else ""
    return f"the server {how} instead of answering{wrote}"


def quoted(said: object) -> str:
    """Return a value as JSON on one line, in which nothing can pass for the words around it."""
    return printable(json.dumps(said, ensure_ascii=False), lines=False)
