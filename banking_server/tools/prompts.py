"""Arguments that a language model must infer: `PROMPT_ARGUMENT: what is wanted`.

Only steps of `multiplex_tools` may have them: there are results of earlier calls, and the caller
agreed that a model is asked. A single call with such an argument is refused. It has no earlier
results, since this server keeps nothing between calls, and a model's guess would be stored as if
the caller had written it.

Any other text is an ordinary value. A value from a model or an expression is always data.
"""

from collections.abc import Mapping
from typing import Any, Final

PROMPT_MARK: Final = "PROMPT_ARGUMENT"


def prompts(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the prompts among the arguments of a call, by the arguments' names.

    A prompt begins with the mark in capitals; the colon may be left out. It may be empty.
    """
    return {
        name: value.removeprefix(PROMPT_MARK).lstrip(": ").strip()
        for name, value in arguments.items()
        if isinstance(value, str) and value.startswith(PROMPT_MARK)
    }
