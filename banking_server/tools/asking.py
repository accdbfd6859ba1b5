"""Putting a question to the customer: form elicitation, if the client can be asked.

2026-07-28 carries the question in an interim result and asks again from the top, so questions
hold nothing that changes between two rounds: no balance, no time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.types import ClientCapabilities
from mcp.types.version import is_version_at_least
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from banking_server.tools.sdk import can_send_request
from banking_server.tools.titles import READABLE, readable

QUESTIONS_IN_RESULTS: Final = "2026-07-28"
"""The first protocol revision that needs no open channel to the client for a question."""


def asks_in_results(ctx: Context[Any, Any]) -> bool:
    """Say whether this client takes questions from interim results (from 2026-07-28 on)."""
    return is_version_at_least(ctx.protocol_version or "", QUESTIONS_IN_RESULTS)


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Say whether a form can be put to this client in the middle of this call.

    The client must declare form elicitation. On 2025-11-25 the transport must also have a way back
    to the client, and HTTP has none outside a session.
    """
    return takes_forms(ctx.client_capabilities) and (asks_in_results(ctx) or can_send_request(ctx))


def takes_forms(capabilities: ClientCapabilities | None) -> bool:
    """Say whether a client declares form elicitation; a bare `elicitation: {}` means forms."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _as_asked(schema: dict[str, Any]) -> None:
    """Leave out of a form's schema what forms do not have."""
    del schema["additionalProperties"]


class Answer(BaseModel):
    """What a form is answered with: its own members, as they are, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_as_asked, **READABLE)


class Pick(Answer):
    """The answer to a picker."""

    picked: str


@dataclass(frozen=True)
class Option:
    """One line of a picker."""

    value: str
    title: str


def picker(name: str, options: Sequence[Option]) -> type[Pick]:
    """Return the form that lets the customer pick one of `options`, shown by their titles.

    `name` is what is picked, on the wire.
    """
    title = readable(name)
    schema = {
        "type": "string",
        "title": title,
        "oneOf": [{"const": option.value, "title": option.title} for option in options],
    }
    # mypy cannot know a Literal made of values; pydantic checks the answer against it.
    values: Any = Literal[tuple(option.value for option in options)]
    return create_model(
        "Pick",
        __base__=Pick,
        picked=(Annotated[values, WithJsonSchema(schema)], Field(title=title)),
    )


class Agreement(Answer):
    """The answer to a yes-or-no question: a yes is `true`, and nothing that is like it."""

    agreed: bool = Field(title="Yes, do it")
