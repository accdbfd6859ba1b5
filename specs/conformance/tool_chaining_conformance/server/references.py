"""Replaces `${name}` in a scenario by its value."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tool_chaining_conformance.values import texts_in

_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")


def references(value: Any) -> Iterator[str]:
    """Yield the name of each `${name}` in `value`."""
    for text in texts_in(value):
        yield from _REFERENCE.findall(text)


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return `value` with each `${name}` replaced by its known value.

    A text that is only `${name}` becomes the value itself, with its type. A `${name}` whose value
    could not be captured stays as it is.
    """
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _REFERENCE.sub(lambda match: str(values.get(match[1], match[0])), value)
    return value
