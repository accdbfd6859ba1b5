"""The suite's answers, as a user, to a server's questions."""

from collections.abc import Sequence
from typing import Literal

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.scenario_file import Strict
from tool_chaining_conformance.target.channel import Ask


class ElicitationAnswer(Strict):
    """The user's answer to one question."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None
    """The content of the form, as it goes on the wire."""

    def to_wire(self) -> Json:
        """Return the result of the question."""
        if self.action != "accept":
            return {"action": self.action}
        return {"action": self.action, "content": self.content or {}}


def answering(answers: Sequence[ElicitationAnswer] = ()) -> Ask:
    """Return a function that gives the answers of one call in order.

    Further questions are cancelled.
    """
    left = list(answers)

    def answer(method: str) -> Json | None:
        if method == "ping":
            return {}
        if method != "elicitation/create":
            return None
        return left.pop(0).to_wire() if left else {"action": "cancel"}

    return answer
