"""Arguments that a language model must infer: `PROMPT_ARGUMENT: what is wanted`.

Only steps of `multiplex_tools` may have them: there are results of earlier calls, and the caller
agreed that a model is asked. A single call with such an argument is refused. It has no earlier
results, since this server keeps nothing between calls, and a model's guess would be stored as if
the caller had written it.

A bare `PROMPT_ARGUMENT` is an empty prompt. It is refused, because a model could only guess.

A text that is nearly a prompt, as models write it, is refused too and never stored, in a step and
in a single call. Such a text

- has the exact mark and a colon anywhere: `Copy of {PROMPT_ARGUMENT: the name}`;
- or begins with the two words, after any punctuation: in capitals (`PROMPT ARG x`), joined by an
  underscore (`prompt_argument x`), or as one word with a colon (`promptArgument: x`).

Any other value is an ordinary text: `Prompt argument: settled`, `prompt_argument_parser licence`,
`see [PROMPT_ARGUMENT]`. A value from a model or an expression is always data.
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
    """Return the prompt in a text, which may be empty; None if the text is not a prompt.

    A prompt begins with the mark in capitals; the colon may be left out.
    """
    found = _MARK.fullmatch(text)
    return None if found is None else found[1].strip()


def is_nearly_prompt(text: str) -> bool:
    """Return whether a text is a prompt or looks like a mistyped one."""
    is_mark = prompt_in(text) is not None
    return is_mark or bool(_NEARLY.match(text) or _ANYWHERE.search(text))


def misplaced_prompt(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of an argument of a single call that is a prompt, or nearly one."""
    for name, value in arguments.items():
        if isinstance(value, str) and is_nearly_prompt(value):
            return name
    return None
