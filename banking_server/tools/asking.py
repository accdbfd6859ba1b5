"""Questions to the customer by form elicitation, if the client supports it.

On 2026-07-28 an interim result carries the question, and the client then sends the whole call
again. So a question must not contain anything that changes in between: no balance, no time.
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
"""The first protocol revision in which a result can carry a question."""


def can_ask_in_results(ctx: Context[Any, Any]) -> bool:
    """Return whether results of this revision can carry questions (from 2026-07-28 on)."""
    return is_version_at_least(ctx.protocol_version or "", QUESTIONS_IN_RESULTS)


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Return whether this client can show a form during this call.

    The client must declare form elicitation. On 2025-11-25 the server must also be able to send a
    request to it, which is not possible over HTTP without a session.
    """
    return accepts_forms(ctx.client_capabilities) and (
        can_ask_in_results(ctx) or can_send_request(ctx)
    )


def accepts_forms(capabilities: ClientCapabilities | None) -> bool:
    """Return whether a client declares form elicitation; a bare `elicitation: {}` means forms."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _form_schema(schema: dict[str, Any]) -> None:
    """Remove the member that MCP does not allow in the schema of a form."""
    del schema["additionalProperties"]


class Answer(BaseModel):
    """The answer to a form: exactly its members, without conversion of types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra=_form_schema, **READABLE
    )


class Pick(Answer):
    """The answer to a picker."""

    picked: str


@dataclass(frozen=True)
class Option:
    """One line of a picker."""

    value: str
    title: str


def picker(name: str, options: Sequence[Option]) -> type[Pick]:
    """Return a form with which the customer picks one of `options` by its title.

    `name` is the name of the argument on the wire.
    """
    title = readable(name)
    schema = {
        "type": "string",
        "title": title,
        "oneOf": [{"const": option.value, "title": option.title} for option in options],
    }
    # mypy cannot check this Literal. pydantic uses it to check the answer.
    values: Any = Literal[tuple(option.value for option in options)]
    return create_model(
        "Pick",
        __base__=Pick,
        picked=(Annotated[values, WithJsonSchema(schema)], Field(title=title)),
    )


class Agreement(Answer):
    """The answer to a yes-or-no question: only `true` means yes."""

    agreed: bool = Field(title="Yes, do it")
