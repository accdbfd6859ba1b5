"""What the suite says, in the part of a user, to a server's question."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import model_validator

from banking_server.conformance.scenario_file import Json, Strict


class ElicitationAnswer(Strict):
    """What the user says to one question."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None
    value: Any = None
    """Short form of `content` for a form with one property."""

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
