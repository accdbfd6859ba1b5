"""What the suite says, in the part of a user, to a server's questions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import model_validator

from banking_server.conformance.message import within
from banking_server.conformance.scenario_file import Json, Strict
from banking_server.conformance.target.channel import Unanswerable


class ElicitationAnswer(Strict):
    """What the user says to one question."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None
    """The content of the form, as it goes on the wire."""
    value: Any = None
    """Short form of `content` for a form with one property: its value, whatever its name."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if {"content", "value"} <= self.model_fields_set:
            raise ValueError("give either content or value, not both")
        return self

    def to_wire(self, requested_schema: Mapping[str, Any]) -> Json:
        """Return the result of the question whose form is `requested_schema`."""
        if self.action != "accept":
            return {"action": self.action}
        content = self.content or {}
        if "value" in self.model_fields_set:
            content = dict.fromkeys([*within(requested_schema, "properties")][:1], self.value)
        return {"action": self.action, "content": content}


class Answers:
    """Hands out the answers of one call, in order; what is asked beyond them is cancelled."""

    def __init__(self, answers: Sequence[ElicitationAnswer] = ()) -> None:
        self._left = list(answers)

    def __call__(self, method: str, params: Json) -> Json:
        """Answer a request of the server. Raises Unanswerable if it is not a question."""
        if method == "ping":
            return {}
        if method != "elicitation/create":
            raise Unanswerable(method)
        if self._left:
            return self._left.pop(0).to_wire(within(params, "requestedSchema"))
        return {"action": "cancel"}

    def to_interim(self, question: Any) -> Json:
        """Answer one question of an interim result; one that makes no sense is cancelled."""
        method = question.get("method") if isinstance(question, dict) else None
        try:
            return self(str(method), within(question, "params"))
        except Unanswerable:
            return {"action": "cancel"}
