"""What reports keep of a run: no secret, and no more than fits."""

from typing import Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.redaction import Redaction
from banking_server.text import cut

MESSAGE: Final = 1024 * 1024
"""Characters that one message may have."""

MESSAGES: Final = 60
"""Messages that are kept for one judgement: the last ones."""

TEXT: Final = 4000
"""Characters of one text that are kept."""

LEVELS: Final = 60
"""Levels of nesting that are kept."""


class Shortening:
    """Takes secrets out of what a report shows, and then cuts it."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
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
            if size > MESSAGE:
                body = {"\u2026": f"a message of {size:,} characters"}
            self._shown[id(message)] = WireMessage(message.sender, body)
        return self._shown[id(message)]
