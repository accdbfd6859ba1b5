"""How an argument says that a language model is to infer it: `PROMPT_ARGUMENT: what is wanted`.

Only the steps of `multiplex_tools` are filled in so: there the results of earlier calls are at
hand, and whoever calls has said that a model may be asked. In a call of its own such a text is
refused. A single call has no earlier results here (this server keeps nothing from one call to the
next, so that no customer can meet what another was told), and a guess without them would be stored
as if the caller had written it.

A text that is nearly such a mark, as models write it, is refused too instead of being stored; one
that only mentions it further on is a text like any other.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

PROMPT_MARK: Final = "PROMPT_ARGUMENT"

_MARK: Final = re.compile(rf"{PROMPT_MARK}(?![^\s:])\s*:?(.*)", re.DOTALL)

_BEGINNING: Final = 80
"""Characters in which a text shows whether it is nearly a prompt."""

_QUOTED: Final = r"""(?!["'\u2019\u201d]\s+\w)"""
"""Not for `"PROMPT_ARGUMENT" is what it said`: that is about the mark."""

_NEARLY: Final = re.compile(
    r"[\W_]*(?:"
    # prompt_argument, Prompt-Argument, promptArgument, PROMPT_ARG, PROMT_ARGUEMENT, …
    rf"(?i:pro?m?p?ts?(?:[-_.\\\u2010-\u2015]*|\s?_\s?)arg(?:s?|u\w*)(?![^\W_]){_QUOTED})"
    # With a blank it can be ordinary words: "Prompt argument with the landlord".
    r"|(?i:prompt\s+arguments?\s*[:=])"
    rf"|PROMPT\s+ARGUMENTS?\b{_QUOTED})"
)


def prompt_in(text: str) -> str | None:
    """Return what a text wants inferred, which may be nothing; None if it is no prompt.

    It begins with the mark, in capitals; the colon may be left out.
    """
    found = _MARK.fullmatch(text)
    return None if found is None else found[1].strip()


def is_nearly_prompt(text: str) -> bool:
    """Return whether a text begins with the mark, or with what is taken for it mistyped."""
    beginning = text.lstrip()[:_BEGINNING]
    if not beginning.isascii():
        # Letters and colons of full width, and characters that nobody sees.
        visible = (each for each in beginning if unicodedata.category(each) != "Cf")
        beginning = unicodedata.normalize("NFKC", "".join(visible)).lstrip()
    return _NEARLY.match(beginning) is not None


def misplaced_prompt(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of an argument of a single call that is a prompt, or nearly one."""
    for name, value in arguments.items():
        if isinstance(value, str) and is_nearly_prompt(value):
            return name
    return None
