"""Values that a scenario keeps from results."""

import re
from typing import Any

from banking_server.conformance.message import Json
from banking_server.conformance.server.scenario import Capture
from banking_server.conformance.values import at_pointer


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
