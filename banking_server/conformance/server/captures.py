"""Values that a scenario keeps from results, and puts in the place of `${name}`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from banking_server.conformance.message import Json
from banking_server.conformance.server.scenario import Capture
from banking_server.conformance.values import at_pointer

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_]*)\}")


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return `value` with captured values in the place of `${name}`, wherever it stands in it.

    A text that is nothing but `${name}` becomes the value itself, whatever its type.
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


def captured(capture: Capture, result: Json) -> Any:
    """Return the value that a capture means, or None if the result does not have it."""
    if capture.pointer is not None:
        return at_pointer(capture.pointer, result)
    content = result.get("content")
    for item in content if isinstance(content, list) else []:
        text = item.get("text") if isinstance(item, dict) else None
        match = re.search(capture.text or "", text) if isinstance(text, str) else None
        if match is not None:
            return match[1] if match.re.groups else match[0]
    return None
