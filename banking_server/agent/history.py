"""The conversation within its bound: the newest is kept whole, and what is long past is short."""

import json
from collections.abc import Sequence
from typing import Final

from banking_server.agent.audience import result_for_model
from banking_server.agent.endpoint import Message
from banking_server.agent.transcript import Called, Calling, Entry
from banking_server.text import cut, one_line

SHORT: Final = 300
"""Characters that are kept of an old request, call, result or answer."""


class History:
    """What was said, within about `characters`; the system message is not among it.

    Where it is too long, the oldest requests are told in a few lines, then the oldest results of
    the request under way are cut. The newest message is always whole.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self.messages: list[Message] = []
        self._past: list[tuple[int, str]] = []
        """The requests in `messages`: how many messages each has, and the request in short."""
        self._earlier: list[str] = []
        self._forgotten = 0
        self._begins = 0
        """The place of the request under way."""

    def begin(self, request: str) -> None:
        """Add the user's next request."""
        self._begins = len(self.messages)
        self.messages.append({"role": "user", "content": request})

    def forget(self, some: Sequence[Message]) -> None:
        """Leave out some messages of the request under way."""
        self.messages[:] = [one for one in self.messages if not any(one is it for it in some)]

    def end(self, transcript: Sequence[Entry]) -> None:
        """Take note that the request under way is over; its answer is the last message."""
        asked, ended = (str(self.messages[at]["content"]) for at in (self._begins, -1))
        lines = [f"- The user asked: {one_line(asked, SHORT)}"]
        begun: Calling | None = None
        for entry in transcript:
            if isinstance(entry, Calling):
                begun = entry
            elif isinstance(entry, Called):
                begun, step = None, entry.step
                words = result_for_model(step.tool, step.without_words())
                called = one_line(json.dumps(step.arguments, ensure_ascii=False), SHORT)
                lines.append(f"  {step.tool} {called}: {one_line(words, SHORT)}")
        if begun is not None:
            lines.append(f"  {begun.tool.name}: whether it took effect is not known")
        lines.append(f"  You said: {one_line(ended, SHORT)}")
        self._past.append((len(self.messages) - self._begins, "\n".join(lines)))

    def earlier(self) -> str:
        """Tell the model of the requests that are no longer in `messages`; empty if none are."""
        if not (self._earlier or self._forgotten):
            return ""
        more = [f"({self._forgotten} older requests are not listed.)"] if self._forgotten else []
        return "\n".join(["Earlier in this conversation, in short:", *more, *self._earlier])

    def fit(self) -> None:
        """Shorten what is too long."""
        while self._past and self._size() > self._characters:
            length, in_short = self._past.pop(0)
            del self.messages[:length]
            self._begins -= length
            self._earlier.append(in_short)
        while self._earlier and len(self.earlier()) > self._characters // 2:
            self._earlier.pop(0)
            self._forgotten += 1
        for message in self.messages[self._begins + 1 : -1]:
            if self._size() > self._characters and message["role"] != "assistant":
                message["content"] = cut(message["content"], SHORT)

    def _size(self) -> int:
        calls = [json.dumps(one.get("tool_calls", "")) for one in self.messages]
        words = [one["content"] or "" for one in self.messages]
        return len(self.earlier()) + sum(map(len, [*calls, *words]))
