"""Makes the result of a call: text for people, structured content, and the next tool.

The bank names a wrong argument by its Python name; the result has its name on the wire.
"""

import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final, Literal

from mcp.types import Annotations, CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from banking_server.bank.rules import Argument, NotFound, Refused, TooMany
from banking_server.bank.storage import BankBusy, DatabaseUnavailable, MaybeDone
from banking_server.tools.titles import READABLE
from tool_chaining import META_KEY, Directive, NextStep
from tool_chaining.content import NEXT_STEP, for_user_alone, on_the_wire

logger = logging.getLogger(__name__)

Audience = Literal["user", "assistant"]


class Structured(BaseModel):
    """Structured content with camelCase names on the wire; absent members are left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, **READABLE)


RefusalStatus = Literal[
    "invalid_arguments",
    "invalid_answer",
    "refused",
    "too_many",
    "not_found",
    "wrong_code",
    "voided",
    "unknown_tool",
    "busy",
    "unavailable",
]


class Refusal(Structured):
    """Why nothing was done."""

    status: RefusalStatus
    field: str | None = Field(default=None, description="The argument that is wrong.")
    incident: str | None = Field(default=None, description="What to quote to the bank.")


def with_refusal_schema(
    output_schema: dict[str, Any], *, names_next_tool: bool = False
) -> dict[str, Any]:
    """Return the output schema of a tool whose own members `output_schema` describes.

    It also allows a refusal, because some clients check error results against the output schema
    too. It has the member `message`, which `result` adds. With `names_next_tool` it has `nextStep`,
    which `add_tool_chaining` adds for a client that does not follow directives.
    """
    shapes = [output_schema, _REFUSAL]
    definitions = {name: item for shape in shapes for name, item in shape.get("$defs", {}).items()}
    members = {"message": _MESSAGE}
    if names_next_tool:
        definitions["NextStep"] = _NEXT_STEP
        members[NEXT_STEP] = {"$ref": "#/$defs/NextStep", "title": "Next step"}
    return {
        "type": "object",
        "anyOf": [_with(members, shape) for shape in shapes],
        "$defs": definitions,
    }


_REFUSAL: Final = Refusal.model_json_schema(by_alias=True)

_MESSAGE: Final = {"type": "string", "title": "Message", "description": "What the user is told."}

_NEXT_STEP: Final = NextStep.model_json_schema()


def _with(members: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    own = {name: rule for name, rule in shape.items() if name != "$defs"}
    return {
        **own,
        "properties": {**own["properties"], **members},
        "required": [*own.get("required", []), "message"],
    }


_FOR: Final[dict[Audience | None, Annotations]] = {
    "user": Annotations(audience=["user"]),
    "assistant": Annotations(audience=["assistant"]),
}


def text(words: str, audience: Audience | None = None) -> TextContent:
    """Return a text item, for everybody or for one audience."""
    return TextContent(type="text", text=words, annotations=_FOR.get(audience))


def with_message(message: str, structured: Structured) -> dict[str, Any]:
    """Return structured content with the text for the user as its member `message`.

    Some hosts show their model and user only the structured content.
    """
    members = structured.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**members, "message": message}


def result(
    message: str,
    structured: Structured,
    *,
    audience: Audience | None = None,
    more: Sequence[TextContent] = (),
    then: Directive | None = None,
    is_error: bool = False,
) -> CallToolResult:
    """Return the result of a call, with `message` as text and in the structured content.

    `audience` is the audience of that text; None means everybody. `more` is further text with an
    audience of its own; text for the user is also part of the structured `message`. `then` is the
    directive to the next tool, if there is one.
    """
    for_user = [message, *(item.text for item in more if for_user_alone(on_the_wire(item)))]
    return CallToolResult(
        content=[text(message, audience), *more],
        structured_content=with_message("\n".join(for_user), structured),
        is_error=is_error,
        _meta=None if then is None else {META_KEY: then.to_wire()},
    )


def refuse(
    status: RefusalStatus, field: str | None, words: str, *, incident: str | None = None
) -> CallToolResult:
    """Return an error result. `field` is the wrong argument's name on the wire."""
    refusal = Refusal(status=status, field=field or None, incident=incident)
    return result(words, refusal, is_error=True)


def refusal_of(outcome: Refused | NotFound | TooMany) -> CallToolResult:
    """Return the error result for an outcome of the bank."""
    if isinstance(outcome, TooMany):
        return refuse("too_many", None, outcome.message)
    field = to_camel(outcome.field)
    if isinstance(outcome, NotFound):
        words = f"{field}: you have nothing with the id {outcome.value!r}. {_where(outcome)}."
        return refuse("not_found", field, words)
    return refuse("refused", field, f"{field}: {outcome.message}")


_GIVEN_BY: Final = {
    Argument.EXPIRED_TRANSFER_ID: "confirm_or_cancel_money_transfer",
    Argument.TRANSFER_ID: "prepare_money_transfer",
    Argument.HANDOFF_ID: "request_agent_handoff",
}
"""The tools that give ids other than an account's."""

_NAMED: Final = 10
"""The most accounts that are listed if an id is not found."""


def _where(outcome: NotFound) -> str:
    """Return which tool gives the id, with the ids of the customer's accounts."""
    if outcome.field in _GIVEN_BY:
        return f"{_GIVEN_BY[outcome.field]} gives the id"
    known = ", ".join(outcome.known[:_NAMED])
    return f"list_accounts gives the ids{': ' if known else ''}{known}"


def temporarily_unavailable(tool: str, error: BaseException) -> CallToolResult:
    """Return the result for a call that failed at the bank.

    If the bank is busy, the result says so. Any other error is logged as an incident, and the
    result has only the incident's number.
    """
    if isinstance(error, BankBusy):
        return refuse("busy", None, str(error))
    incident = log_incident(tool, error)
    words = _MAYBE_DONE if isinstance(error, MaybeDone) else _NOT_DONE
    return refuse("unavailable", None, incident_message(incident, words), incident=incident)


def log_incident(called: str, problem: BaseException | str) -> str:
    """Log an error of the bank, and return its incident number."""
    incident = secrets.token_hex(4)
    if isinstance(problem, str | DatabaseUnavailable | MaybeDone):  # Complete in one line.
        logger.error("Incident %s in %r: %s", incident, called, problem)
    else:
        logger.error("Incident %s in %r", incident, called, exc_info=problem)
    return incident


_NOT_DONE: Final = "Nothing else was changed."
_MAYBE_DONE: Final = (
    "What you asked for may have been done or not. Make the same call again to find out: nothing "
    "is done twice."
)


def incident_message(incident: str, words: str = _NOT_DONE) -> str:
    """Return the message for an incident; `words` says what was done."""
    return f"The bank is temporarily unavailable. {words} {try_again_later(incident)}."


def try_again_later(incident: str) -> str:
    """Return the advice for an incident."""
    return f"Please try again later; if it persists, quote incident {incident}"
