"""How an argument says that a language model is to infer it: `PROMPT_ARGUMENT: what is wanted`.

Only the steps of `multiplex_tools` are filled in so: there the results of earlier calls are at
hand, and whoever calls has said that a model may be asked. In a call of its own such a text is
refused. A single call has no earlier results here (this server keeps nothing from one call to the
next, so that no customer can meet what another was told), and a guess without them would be stored
as if the caller had written it.

A bare `PROMPT_ARGUMENT` is a prompt that is empty, and refused: a model that is not told what is
wanted could only guess.

A text that is nearly a prompt, as models write it, is refused too instead of being stored, in a
step and in a call of its own alike. That is one

- that has the exact mark and a colon anywhere: `Copy of {PROMPT_ARGUMENT: the name}`;
- or that begins with the two words, misspelt or not, behind whatever signs: joined by an
  underscore (`prompt_argument x`), in capitals (`PROMPT ARGUMENT x`), or written as one word with
  a colon behind it (`promptArgument: x`, `prompt-argument: x`).

Every other is a text: `Prompt argument: settled`, `prompt_argument_parser licence`, `see
[PROMPT_ARGUMENT]`. What a model or an expression gives is data, whatever it says.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

PROMPT_MARK: Final = "PROMPT_ARGUMENT"

_MARK: Final = re.compile(rf"{PROMPT_MARK}(?![^\s:])\s*:?(.*)", re.DOTALL)

_BEGINNING: Final = 80
"""Characters in which a text shows whether it is nearly a prompt."""

_ANYWHERE: Final = re.compile(rf"(?<!\w){PROMPT_MARK}\s*+:")

_PROMPT: Final = "pro?m?p?ts?"
_ARGUMENT: Final = r"arg(?:s|u?[^\W_]*m[^\W_]*t[^\W_]*)?"
_CAPITALS: Final = "ARG(?:S|U?[A-Z]*M[A-Z]*T[A-Z]*)?"
_END: Final = r"""(?!\w)(?!["'\u2019\u201d]\s+\w)"""
"""Not in `prompt_argument_parser`, and not in `"PROMPT_ARGUMENT" is a word`: that is about it."""

_NEARLY: Final = re.compile(
    r"[\W_]*+(?:"
    rf"(?i:{_PROMPT}\s?\\?_+\s?{_ARGUMENT}){_END}"
    rf"|{_PROMPT.upper()}[-\s_.\\\u2010-\u2015]{{0,3}}{_CAPITALS}{_END}"
    rf"|(?i:{_PROMPT}[-_.\\\u2010-\u2015]{{0,3}}{_ARGUMENT}(?![^\W\d_])\w*)[^\w\s:=]{{0,4}}\s?[:=])"
)

_LOOKALIKES: Final = str.maketrans(
    "\u0410\u0415\u041c\u041e\u0420\u0422\u0391\u0395\u039c\u039d\u039f\u03a1\u03a4",
    "AEMOPTAEMNOPT",
)
"""Cyrillic and Greek capitals, and the Latin ones that they are taken for."""


def prompt_in(text: str) -> str | None:
    """Return what a text wants inferred, which may be nothing; None if it is no prompt.

    It begins with the mark, in capitals; the colon may be left out.
    """
    found = _MARK.fullmatch(text)
    return None if found is None else found[1].strip()


def is_nearly_prompt(text: str) -> bool:
    """Return whether a text is a prompt, or is taken for one that is mistyped."""
    beginning = text.lstrip()[:_BEGINNING]
    if not beginning.isascii():
        # Letters and colons of full width, and characters that nobody sees.
        visible = (each for each in beginning if unicodedata.category(each) != "Cf")
        beginning = unicodedata.normalize("NFKC", "".join(visible)).lstrip()
        beginning = beginning[:_BEGINNING].translate(_LOOKALIKES)
    is_mark = prompt_in(text) is not None
    return is_mark or bool(_NEARLY.match(beginning) or _ANYWHERE.search(text))


def misplaced_prompt(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of an argument of a single call that is a prompt, or nearly one."""
    for name, value in arguments.items():
        if isinstance(value, str) and is_nearly_prompt(value):
            return name
    return None
