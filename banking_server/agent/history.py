"""The conversation within a bound: what is long past is told in short, and nothing is forgotten.

The newest request is kept whole as long as it fits. Older requests become an account, made from
their transcripts: what was asked, each call with its outcome and its references, the answer. Where
the accounts are too long together, what mattered least goes first: talk, then the words of old
requests down to a line for each call, then the calls that changed nothing. The calls that changed
something go last, and it is said how many did.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from banking_server.agent.audience import result_for_model, without_secrets
from banking_server.agent.endpoint import Message
from banking_server.agent.transcript import Called, Calling, Entry
from banking_server.text import one_line

ASKED: Final = 200
"""Characters of an old request, and of an old answer, that are kept."""

CALLED: Final = 300
"""Characters of an old call's arguments, of its result and of its references that are kept."""

BRIEFLY: Final = 80
"""Characters of its arguments that are kept in one line."""

SHORTENED: Final = 300
"""Characters that are kept of an old result in the request under way."""

_REFERENCE: Final = re.compile(
    r"\b[A-Za-z]{1,20}[-_]?\d[\w-]{0,60}\b"
    r"|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"
    r"|\b(?:reference:?|no\.) \d[\w-]{0,60}",
    re.IGNORECASE,
)
"""What looks like a reference in a text: `pay_12`, `TRX-2026-1`, `no. 77`."""


_REQUESTS: Final = "requests and answers in words"
_READ: Final = "calls that changed nothing"
_CHANGED: Final = "calls that may have changed something"


@dataclass(frozen=True)
class Brief:
    """One call in a line."""

    line: str
    bare: str
    """The same without its arguments."""
    changes: bool


@dataclass(frozen=True)
class Account:
    """What became of a request, in a few lines, and each of its calls in a line."""

    text: str
    calls: tuple[Brief, ...] = ()


def account(request: str, transcript: Sequence[Entry], ended: str) -> Account:
    """Return the account of a request; `ended` is its answer, or why it has none."""
    calls = list(_calls(transcript))
    lines = [
        f"- The user asked: {one_line(request, ASKED)}",
        *(text for text, _ in calls),
        f"  You said: {one_line(ended, ASKED)}",
    ]
    return Account("\n".join(lines), tuple(brief for _, brief in calls))


def _calls(transcript: Sequence[Entry]) -> Iterator[tuple[str, Brief]]:
    """Yield each call, in some lines and in one."""
    begun: Calling | None = None
    for entry in transcript:
        if isinstance(entry, Calling):
            if begun is not None:
                yield _unanswered(begun)
            begun = entry
        elif isinstance(entry, Called):
            step = entry.step
            words = result_for_model(step.tool, step.without_words())
            found = dict.fromkeys(
                [
                    *_references(without_secrets(step.result.structured_content, step.result)),
                    *(one[0] for one in _REFERENCE.finditer(words)),
                ]
            )
            references = f" [{', '.join(found)[:CALLED]}]" if found else ""
            text = (
                f"  {step.tool} was called with {_arguments(step.arguments, CALLED)}. "
                f"{one_line(words, CALLED)}{references}"
            )
            # What an untrusted server calls read-only may have changed something.
            changes = begun is None or not begun.tool.read_only
            outcome = ("failed" if step.result.is_error else "done") + references
            yield text, _brief(step.tool, step.arguments, outcome, changes)
            begun = None
    if begun is not None:
        yield _unanswered(begun)


def _unanswered(call: Calling) -> tuple[str, Brief]:
    outcome = "no answer came, so whether it took effect is not known"
    brief = _brief(call.tool.name, call.arguments, outcome, not call.tool.read_only)
    return f"  {call.tool.name}: {outcome}.", brief


def _brief(tool: str, arguments: dict[str, Any], outcome: str, changes: bool) -> Brief:
    bare = f"- {tool}: {outcome}"
    return Brief(f"{bare}; called with {_arguments(arguments, BRIEFLY)}", bare, changes)


def _arguments(arguments: dict[str, Any], length: int) -> str:
    return one_line(json.dumps(arguments, ensure_ascii=False), length)


class Earlier:
    """The accounts of old requests, together within a bound."""

    def __init__(self, heading: str = "Earlier in this conversation, in short:") -> None:
        self._heading = heading
        self._calls: list[Brief] = []
        """The calls of requests whose account is no longer told, each in a line."""
        self._accounts: list[Account] = []
        self._left_out = {_REQUESTS: 0, _READ: 0, _CHANGED: 0}

    def add(self, one: Account) -> None:
        """Add the account of the next request."""
        self._accounts.append(one)

    def add_calls(self, transcript: Sequence[Entry]) -> None:
        """Add the calls of a request, each in a line."""
        self._calls += [brief for _, brief in _calls(transcript)]

    def hold(self, characters: int) -> None:
        """Let go of what matters least until the rest is within the bound."""
        while len(self.in_words()) > characters and self._let_go():
            pass

    def _let_go(self) -> bool:
        for one in self._accounts:
            if not one.calls:
                self._accounts.remove(one)
                self._left_out[_REQUESTS] += 1
                return True
        if self._accounts:
            self._calls += self._accounts.pop(0).calls
            self._left_out[_REQUESTS] += 1
            return True
        for call in self._calls:
            if not call.changes:
                self._calls.remove(call)
                self._left_out[_READ] += 1
                return True
        for number, call in enumerate(self._calls):
            if call.line != call.bare:
                self._calls[number] = replace(call, line=call.bare)
                return True
        if self._calls:
            self._calls.pop(0)
            self._left_out[_CHANGED] += 1
            return True
        return False

    def in_words(self) -> str:
        """Return them as text for the model; empty if there are none."""
        left_out = [f"{what}: {number}" for what, number in self._left_out.items() if number]
        lines = [f"- (Not listed: {'; '.join(left_out)}.)"] if left_out else []
        lines += [call.line for call in self._calls]
        lines += [known.text for known in self._accounts]
        return "\n".join([self._heading, *lines]) if lines else ""


def size(messages: Sequence[Message]) -> int:
    """Return the characters of some messages, their calls included."""
    return sum(
        len(message.get("content") or "")
        + (len(json.dumps(message["tool_calls"])) if message.get("tool_calls") else 0)
        for message in messages
    )


def shorten(messages: list[Message], characters: int) -> bool:
    """Shorten a request under way, until it fits or only its newest turn is left.

    `messages` are those of the request, from the user's words on. The oldest results are cut first,
    and then the oldest turns go. Returns whether turns went.
    """
    for number, message in enumerate(messages[1:-1], start=1):
        if size(messages) <= characters:
            return False
        words = message.get("content") or ""
        if message["role"] != "assistant" and len(words) > 2 * SHORTENED:
            left_out = len(words) - SHORTENED
            messages[number] = {
                **message,
                "content": f"{words[:SHORTENED]}\n[{left_out} characters of this are left out now]",
            }
    replies = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
    keeps = 0
    while (
        keeps < len(replies) - 1 and size([messages[0], *messages[replies[keeps] :]]) > characters
    ):
        keeps += 1
    if keeps:
        del messages[1 : replies[keeps]]
    return keeps > 0


def newest(messages: Sequence[Message]) -> list[Message]:
    """Return the user's words and the newest turn of a request under way."""
    replies = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
    return [messages[0], *messages[replies[-1] :]] if replies else list(messages)


def _references(value: Any) -> list[str]:
    """Return the ids that a result names: with them, what was done can be found again.

    Those that stand highest come first.
    """
    found: list[str] = []
    layer = [value]
    while layer:
        pairs = [
            pair
            for one in layer
            for pair in (
                one.items()
                if isinstance(one, dict)
                else [("", item) for item in one]
                if isinstance(one, list)
                else ()
            )
        ]
        found += [
            f"{name} {item}"
            for name, item in pairs
            if isinstance(item, str | int) and name.lower().endswith(("id", "reference"))
        ]
        layer = [item for _, item in pairs]
    return found
