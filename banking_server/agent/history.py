"""The conversation within a bound: what is long past is told in short, and nothing is forgotten.

The newest request is kept whole as long as it fits. Older requests become an account, made from
their transcripts: what was asked, each call with its outcome and its references, the answer. Of a
request under way the oldest results are shortened.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from banking_server.agent.audience import result_for_model
from banking_server.agent.endpoint import Message
from banking_server.agent.shortened import one_line
from banking_server.agent.transcript import Called, Calling, Entry

ASKED: Final = 200
"""Characters of an old request, and of an old answer, that are kept."""

CALLED: Final = 300
"""Characters of an old call's result that are kept, its references apart."""

SHORTENED: Final = 300
"""Characters that are kept of an old result in the request under way."""


@dataclass(frozen=True)
class Account:
    """What became of a request, in a few lines."""

    text: str
    weight: int
    """Calls that changed something count most, a request without a call least."""


def account(request: str, transcript: Sequence[Entry], ended: str) -> Account:
    """Return the account of a request; `ended` is its answer, or why it has none."""
    lines = [f"- The user asked: {one_line(request, ASKED)}"]
    weight = 0
    for entry in transcript:
        if isinstance(entry, Calling):
            weight = max(weight, 1 if entry.tool.says_read_only else 2)
        elif isinstance(entry, Called):
            step = entry.step
            arguments = json.dumps(step.arguments, ensure_ascii=False)
            words = result_for_model(step.tool, step.without_words())
            lines.append(
                f"  {step.tool} was called with {one_line(arguments, CALLED)}. "
                f"{one_line(words, CALLED)}{_references(step.result.structured_content)}"
            )
    lines.append(f"  You said: {one_line(ended, ASKED)}")
    return Account("\n".join(lines), weight)


class Earlier:
    """The accounts of old requests, together within a bound."""

    def __init__(self) -> None:
        self._accounts: list[Account] = []
        self._dropped = 0

    def add(self, one: Account, characters: int) -> None:
        """Add the account of the next request, and let go of the least, the oldest first."""
        self._accounts.append(one)
        while len(self._accounts) > 1 and sum(len(a.text) for a in self._accounts) > characters:
            self._accounts.remove(min(self._accounts, key=lambda known: known.weight))
            self._dropped += 1

    def in_words(self) -> str:
        """Return them as text for the model; empty if there are none."""
        if not self._accounts:
            return ""
        lines = ["Earlier in this conversation, in short:"]
        if self._dropped:
            lines.append(f"- (Not listed: {self._dropped} more.)")
        return "\n".join([*lines, *(known.text for known in self._accounts)])


def size(messages: Sequence[Message]) -> int:
    """Return the characters of some messages, their calls included."""
    return sum(
        len(message.get("content") or "") + len(json.dumps(message.get("tool_calls") or ""))
        for message in messages
    )


def shorten(messages: list[Message], characters: int) -> None:
    """Shorten the oldest results of a request under way, until it fits or only the newest is left.

    `messages` are those of the request, from the user's words on.
    """
    for number, message in enumerate(messages[1:-1], start=1):
        if size(messages) <= characters:
            return
        words = message.get("content") or ""
        if message["role"] != "assistant" and len(words) > 2 * SHORTENED:
            left_out = len(words) - SHORTENED
            messages[number] = {
                **message,
                "content": f"{words[:SHORTENED]}\n[{left_out} characters of this are left out now]",
            }


def _references(structured: Any) -> str:
    """Return the ids that a result names: with them, what was done can be found again."""
    found = [
        f"{name} {value}"
        for name, value in (structured.items() if isinstance(structured, dict) else ())
        if isinstance(value, str | int) and name.lower().endswith(("id", "reference"))
    ]
    return f" [{', '.join(found)[:CALLED]}]" if found else ""
