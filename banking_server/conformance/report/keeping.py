"""What reports keep of the messages behind a failure: the place at fault, and no more than fits.

A target may send as much as it likes. Whatever it sends, all that is kept of one run fits in
`RUN_BYTES`, and secrets that are known are taken out before anything is cut.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.redaction import Redaction
from banking_server.text import cut

RUN_BYTES: Final = 16 * 1024 * 1024
"""Bytes, as Python counts them about, that the messages of a whole run may take."""

MESSAGE_BYTES: Final = 128 * 1024
"""Bytes that one message may take."""

MESSAGES: Final = 60
"""Messages that are kept for one judgement: the last ones, and the one at fault."""

TEXT: Final = 4000
"""Characters of one text that are kept."""

LEVELS: Final = 60
"""Levels of nesting that are kept."""

CUT: Final = "…"


@dataclass(frozen=True)
class Place:
    """A member of a message, by its JSON Pointer (RFC 6901).

    The member may be missing: the place is then where it should be.
    """

    pointer: str
    message: WireMessage | None = None
    """None: the last message that has the first member on the way: `params`, say, or `result`."""


def parts_of(pointer: str) -> list[str]:
    """Return the names and indexes of a JSON Pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def reached(pointer: str, value: Any) -> int:
    """Return how many parts of a JSON Pointer lead somewhere in `value`."""
    for number, part in enumerate(parts_of(pointer)):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return number
    return len(parts_of(pointer))


@dataclass
class Keeper:
    """Keeps the messages that show failures, all of them together within bounds."""

    redaction: Redaction
    left: int = RUN_BYTES
    """Bytes that may still be kept."""
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
        budget = _Budget(min(MESSAGE_BYTES, self.left))
        shallow = _shallow(message.body, LEVELS, budget)
        self.left -= budget.spent
        excerpt = WireMessage(message.sender, _cut_texts(self.redaction.json(shallow)))
        self._kept[id(message)] = message, excerpt
        return excerpt


def _at_fault(messages: Sequence[WireMessage], place: Place | None) -> WireMessage | None:
    if place is None or not messages:
        return None
    if place.message is not None:
        return place.message
    likely = [each for each in messages if reached(place.pointer, each.body)]
    return likely[-1] if likely else None


@dataclass
class _Budget:
    limit: int
    text: int = TEXT
    """Characters of one text that count."""
    spent: int = 0

    @property
    def exhausted(self) -> bool:
        return self.spent >= self.limit


def cost(value: Any) -> int:
    """Return how many bytes a value takes, as Python counts them about."""
    budget = _Budget(sys.maxsize, text=sys.maxsize)
    _shallow(value, LEVELS, budget)
    return budget.spent


def _shallow(value: Any, levels: int, budget: _Budget) -> Any:
    """Copy a value as far as the budget goes; texts stay whole here, but count as they are cut."""
    match value:
        case str():
            budget.spent += 50 + min(len(value), budget.text)
            return value
        case dict() | list() if levels == 0:
            return CUT
        case dict():
            budget.spent += 250
            copy: dict[str, Any] = {}
            for name, item in value.items():
                if budget.exhausted:
                    copy[CUT] = f"{len(value) - len(copy):,} more members"
                    break
                budget.spent += 50 + min(len(name), budget.text)
                copy[name] = _shallow(item, levels - 1, budget)
            return copy
        case list():
            budget.spent += 60
            items: list[Any] = []
            for item in value:
                if budget.exhausted:
                    items.append(f"{CUT} {len(value) - len(items):,} more items")
                    break
                budget.spent += 40
                items.append(_shallow(item, levels - 1, budget))
            return items
        case _:
            return value


def _cut_texts(value: Any) -> Any:
    match value:
        case str():
            return cut(value, TEXT)
        case dict():
            return {cut(name, TEXT): _cut_texts(item) for name, item in value.items()}
        case list():
            return [_cut_texts(item) for item in value]
        case _:
            return value
