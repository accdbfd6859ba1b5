"""Values that a scenario keeps from results."""

import contextlib
from typing import Any

from banking_server.conformance.message import Json
from banking_server.conformance.server.bounded import TooLong, found_in
from banking_server.conformance.server.scenario import Capture
from banking_server.conformance.values import at_pointer


def captured(capture: Capture, result: Json) -> Any:
    """Return the value that a capture means, or None if the result does not have it.

    A text in which the search takes too long does not have it.
    """
    if capture.pointer is not None:
        return at_pointer(capture.pointer, result)
    content = result.get("content")
    for item in content if isinstance(content, list) else []:
        text = item.get("text") if isinstance(item, dict) else None
        if not isinstance(text, str):
            continue
        with contextlib.suppress(TooLong):
            found = found_in(capture.text or "", text)
            if found is not None:
                return found
    return None
