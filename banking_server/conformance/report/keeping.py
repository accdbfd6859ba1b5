"""What reports keep of the messages behind a failure: the place at fault, and no more than fits.

Secrets that are known are taken out before anything is cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.redaction import Redaction
from banking_server.text import cut

RUN_BYTES: Final = 16 * 1024 * 1024
"""Characters that the messages of a whole run may have in a report."""

MESSAGE_BYTES: Final = 1024 * 1024
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


@dataclass
class Keeper:
    """Keeps the messages that show failures, all of them together within bounds."""

    redaction: Redaction
    left: int = RUN_BYTES
    """Characters that may still be kept."""
    _kept: dict[int, tuple[WireMessage, WireMessage]] = field(
        default_factory=dict[int, tuple[WireMessage, WireMessage]]
    )
    """Messages by identity, each with what is kept of it: several checks show the same ones."""

    def text(self, text: str, length: int = TEXT) -> str:
        """Return what is kept of a sentence: its first `length` characters, without secrets."""
        return cut(self.redaction.text(text), length)

    def keep(
        self, messages: Sequence[WireMessage], place: Place | None
    ) -> tuple[tuple[WireMessage, ...], Place | None]:
        """Return what is kept of the messages of one judgement, and the place in one of them."""
        at_fault = _at_fault(messages, place)
        chosen = list(messages[-MESSAGES:])
        if at_fault is not None and not any(each is at_fault for each in chosen):
            chosen[0] = at_fault
        kept: list[WireMessage] = []
        for message in chosen:
            excerpt = self._excerpt(message)
            if excerpt is None:
                continue
            kept.append(excerpt)
            if message is at_fault and place is not None:
                place = replace(place, message=excerpt)
        return tuple(kept), place if place and any(m is place.message for m in kept) else None

    def forget(self) -> None:
        """Let go of the messages of a case: no later judgement shows them."""
        self._kept.clear()

    def _excerpt(self, message: WireMessage) -> WireMessage | None:
        """Return what is kept of a message, or None if there is no room left."""
        if (known := self._kept.get(id(message))) is not None:
            return known[1]
        if self.left <= 0:
            return None
        body = self.redaction.json(message.body, levels=LEVELS, length=TEXT)
        size = len(as_json(body))
        if size > MESSAGE_BYTES:
            body = {"\u2026": f"a message of {size:,} characters"}
        self.left -= min(size, MESSAGE_BYTES)
        excerpt = WireMessage(message.sender, body)
        self._kept[id(message)] = message, excerpt
        return excerpt


def _at_fault(messages: Sequence[WireMessage], place: Place | None) -> WireMessage | None:
    if place is None or place.message is not None:
        return None if place is None else place.message
    first = place.pointer.split("/")[1]
    return next((each for each in reversed(messages) if first in each.body), None)


def cost(value: Any) -> int:
    """Return how many characters a value has as JSON."""
    return len(as_json(value))
