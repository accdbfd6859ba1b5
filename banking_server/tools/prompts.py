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
- or that begins with the two words, behind whatever signs: in capitals (`PROMPT ARG x`), joined by
  an underscore (`prompt_argument x`), or as one word with a colon (`promptArgument: x`).

Every other is a text: `Prompt argument: settled`, `prompt_argument_parser licence`, `see
[PROMPT_ARGUMENT]`. What a model or an expression gives is data, whatever it says.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

PROMPT_MARK: Final = "PROMPT_ARGUMENT"

_MARK: Final = re.compile(rf"{PROMPT_MARK}(?![^\s:])\s*:?(.*)", re.DOTALL)

_NEARLY: Final = re.compile(
    r"[\W_]*+(?:PROMPTS?[\W_]{0,3}ARG(?:UMENT)?S?\b"
    r"|(?i:prompts?_arg(?:ument)?s?\b|prompts?[-_]?arg(?:ument)?s?\s*:))"
)
_ANYWHERE: Final = re.compile(rf"(?<!\w){PROMPT_MARK}\s*+:")


def prompt_in(text: str) -> str | None:
    """Return what a text wants inferred, which may be nothing; None if it is no prompt.

    It begins with the mark, in capitals; the colon may be left out.
    """
    found = _MARK.fullmatch(text)
    return None if found is None else found[1].strip()


def is_nearly_prompt(text: str) -> bool:
    """Return whether a text is a prompt, or is taken for one that is mistyped."""
    is_mark = prompt_in(text) is not None
    return is_mark or bool(_NEARLY.match(text) or _ANYWHERE.search(text))


def misplaced_prompt(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of an argument of a single call that is a prompt, or nearly one."""
    for name, value in arguments.items():
        if isinstance(value, str) and is_nearly_prompt(value):
            return name
    return None
