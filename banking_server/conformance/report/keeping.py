"""What reports keep of a run: no secret, the place at fault, and no more than fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.redaction import Redaction
from banking_server.text import cut

RUN: Final = 16 * 1024 * 1024
"""Characters that the messages of a whole run may have in a report."""

MESSAGE: Final = 1024 * 1024
"""Characters that one message may have."""

MESSAGES: Final = 60
"""Messages that are kept for one judgement: the last ones, and the one at fault."""

TEXT: Final = 4000
"""Characters of one text that are kept."""

LEVELS: Final = 60
"""Levels of nesting that are kept."""


@dataclass(frozen=True)
class Place:
    """A member of a message, by its JSON Pointer (RFC 6901).

    The member may be missing: the place is then where it should be.
    """

    pointer: str
    message: WireMessage | None = None
    """None: the last message that has the first member on the way: `params`, say, or `result`."""


def kept(
    messages: Sequence[WireMessage], place: Place | None
) -> tuple[tuple[WireMessage, ...], Place | None]:
    """Return the messages that one judgement keeps, and the place in one of them."""
    chosen = list(messages[-MESSAGES:])
    at_fault = None if place is None else place.message or _last_with(messages, place)
    if place is None or at_fault is None:
        return tuple(chosen), None
    if not any(each is at_fault for each in chosen):
        chosen[0:1] = [at_fault]
    return tuple(chosen), Place(place.pointer, at_fault)


def _last_with(messages: Sequence[WireMessage], place: Place) -> WireMessage | None:
    first = place.pointer.split("/")[1]
    return next((each for each in reversed(messages) if first in each.body), None)


class Shortening:
    """Takes secrets out of what a report shows, and then cuts it."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._left = RUN
        self._shown: dict[int, WireMessage] = {}
        """What is shown of a message, by its identity: several checks show the same ones."""

    def text(self, text: str) -> str:
        """Return what is shown of a text."""
        return cut(self._redaction.text(text), TEXT)

    def message(self, message: WireMessage) -> WireMessage:
        """Return what is shown of a message."""
        if id(message) not in self._shown:
            body = self._redaction.json(message.body, levels=LEVELS, length=TEXT)
            size = len(as_json(body))
            if size > min(MESSAGE, self._left):
                body = {"\u2026": f"a message of {size:,} characters"}
            else:
                self._left -= size
            self._shown[id(message)] = WireMessage(message.sender, body)
        return self._shown[id(message)]

    def place(self, place: Place) -> Place:
        """Return what is shown of a place."""
        return Place(place.pointer, place.message and self.message(place.message))
