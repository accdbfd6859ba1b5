"""Makes text from others safe to show: shorter, and without invisible characters."""

import json
import re
from pathlib import Path
from typing import Any, Final

MAX_FILE: Final = 1_000_000
"""The most bytes of a file with rules, or with a result to try them on."""

_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f"
    r"\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)

CONTROL: Final = re.compile(f"[{_CONTROLS}]")
"""Control characters, line separators, direction overrides, and half of a surrogate pair.

The marks U+061C, U+200E and U+200F are not included: ordinary Arabic and Hebrew uses them.
"""

_UNSEEN: Final = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
"""`CONTROL`, and characters that look blank or are invisible: tags, marks, fillers, noncharacters.

The two joiners, U+200C and U+200D, are not included: Persian needs them.
"""

_BREAK: Final = re.compile(r"[\n\r\t]")


def cut(text: str, length: int) -> str:
    """Return a text of at most `length` characters, or its beginning and its length."""
    return text if len(text) <= length else f"{text[:length]}\u2026 ({len(text):,} characters)"


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text with control and invisible characters as escapes, such as `\\u202e`.

    With `lines`, tabs and line ends stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(
        lambda found: found[0] if lines and found[0] in "\n\t" else ascii(found[0])[1:-1], text
    )


def one_line(text: str, length: int | None = None) -> str:
    """Return a text as one printable line of at most `length` characters.

    So a line break in a server's text cannot start a line that looks like our own.
    """
    parts = map(str.strip, _BREAK.split(text))
    line = printable(" ".join(part for part in parts if part), lines=False)
    return line if length is None or len(line) <= length else f"{line[: length - 1]}\u2026"


def quoted(value: object) -> str:
    """Return a value as JSON on one line, so that it does not look like the text around it."""
    return printable(json.dumps(value, ensure_ascii=False), lines=False)


def read_small(path: str | Path) -> str:
    """Return the text of a file that a person wrote. Raises OSError, or ValueError.

    It has at most `MAX_FILE` bytes: `/dev/zero` has no end, and a long file is a mistake.
    """
    with open(path, "rb") as file:
        written = file.read(MAX_FILE + 1)
    if len(written) > MAX_FILE:
        raise ValueError(f"it has more than {MAX_FILE:,} bytes")
    return written.decode("utf-8-sig")


def is_json(value: Any) -> bool:
    """Return whether a value can be written as JSON: no NaN, no lone surrogate, not too deep."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True
