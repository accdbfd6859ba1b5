"""What the suite says, in the part of a user, to a server's questions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, model_validator

from banking_server.conformance.scenario_file import Json, Strict
from banking_server.conformance.target.channel import Unanswerable


class ElicitationAnswer(Strict):
    """What the user says to one question."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["content", "value"]}})

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
            properties = requested_schema.get("properties")
            names = list(properties) if isinstance(properties, dict) else []
            content = dict.fromkeys(names[:1], self.value)
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
            schema = params.get("requestedSchema")
            return self._left.pop(0).to_wire(schema if isinstance(schema, dict) else {})
        return {"action": "cancel"}

    def to_interim(self, question: Any) -> Json:
        """Answer one question of an interim result; one that makes no sense is cancelled."""
        if not isinstance(question, dict):
            return {"action": "cancel"}
        params = question.get("params")
        try:
            return self(str(question.get("method")), params if isinstance(params, dict) else {})
        except Unanswerable:
            return {"action": "cancel"}
