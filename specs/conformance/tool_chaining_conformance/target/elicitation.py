"""The suite's answers, as a user, to a server's questions."""

from collections.abc import Sequence
from typing import Any, Literal

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.scenario_file import Strict
from tool_chaining_conformance.target.channel import Unanswerable


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


class Answers:
    """Gives the answers of one call in order; further questions are cancelled."""

    def __init__(self, answers: Sequence[ElicitationAnswer] = ()) -> None:
        self._left = list(answers)

    def __call__(self, method: str, params: Json) -> Json:
        """Answer a request of the server. Raises Unanswerable if it is not a question."""
        if method == "ping":
            return {}
        if method != "elicitation/create":
            raise Unanswerable(method)
        if self._left:
            return self._left.pop(0).to_wire()
        return {"action": "cancel"}

    def to_interim(self, question: Any) -> Json:
        """Answer one question of an interim result; an invalid question is cancelled."""
        method = question.get("method") if isinstance(question, dict) else None
        try:
            return self(str(method), within(question, "params"))
        except Unanswerable:
            return {"action": "cancel"}
