"""What a server sends: a directive is checked, and put into words for those who need them."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mcp_types import Annotations, CallToolResult, TextContent, Tool
from pydantic import BaseModel, ConfigDict, Field

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.content import (
    NEXT_STEP,
    has_next_step,
    hidden_from_model,
    on_the_wire,
    undeclared_arguments,
    without_next_step,
    words_a_directive,
)
from banking_server.chaining.directive import (
    IDENTIFIER,
    MAX_TITLE,
    META_KEY,
    SETTINGS,
    Absent,
    Directive,
    Found,
    Malformed,
    is_title,
    read_directive,
)
from banking_server.chaining.values import keeps_its_value
from banking_server.text import CONTROL, DIRECTION_MARKS

logger = logging.getLogger(__name__)

AnyResult = BaseModel | dict[str, Any]
"""A result as a model of the SDK, or as JSON."""

Listed = Callable[[str], Awaitable[Tool | None]]
"""Returns what the server's list says of a tool now; None if it is not in it."""


class NextStep(BaseModel):
    """The directive in structured content, for hosts that show their model nothing else (TC-S-05).

    A tool whose output schema has the optional member `nextStep`, of this type, gets it filled in
    by `ToolChaining`; the tool itself leaves it out::

        class OrderOut(BaseModel):
            status: str
            nextStep: NextStep | None = None
    """

    model_config = ConfigDict(
        title="Next step",
        field_title_generator=lambda name, _: name.capitalize(),
        json_schema_extra={
            "description": "The call that this server suggests next, to whoever makes it by hand."
        },
    )

    tool: str = Field(description="The tool that this server suggests to call next, once.")
    arguments: dict[str, Any] = Field(description="Its arguments, exactly.")


class DirectiveDropped(Exception):
    """A directive is not fit to be sent; the message says why, and repeats no value of it."""


async def check_outgoing(
    result: AnyResult | None,
    *,
    called: str,
    listed: Listed,
    declared: bool,
    strict: bool = False,
) -> AnyResult | None:
    """Return a result of `tools/call` as it may be sent.

    A directive that is not fit to be sent is logged as an error and dropped (TC-S-08, TC-S-11 to
    TC-S-17, TC-S-26, TC-S-27); if `strict` is set, `DirectiveDropped` is raised. One that is fit
    goes out with the members that are defined, and no others; it is put into words too, unless the
    client is known to have `declared` the extension. `called` is the tool whose result it is.
    """
    meta, structured = _member(result, "_meta", "meta"), _structured(result)
    reading = read_directive(meta)
    if result is None or meta is None or isinstance(reading, Absent):
        return result
    try:
        directive = await _fit(result, reading, meta[META_KEY], listed)
    except DirectiveDropped as problem:
        if strict:
            raise DirectiveDropped(f"Cannot send the directive of {called!r}: {problem}") from None
        logger.error("Dropped the directive of tool %r: %s", called, problem)
        kept = {key: member for key, member in meta.items() if key != META_KEY}
        return _changed(result, kept or None, without_next_step(structured))
    # Only the defined members of the directive go out (TC-S-11).
    sent, meta = meta, {**meta, META_KEY: directive.to_wire()}
    others = _without_own_copy(structured)
    if declared:
        return _changed(result, meta, others) if (meta, others) != (sent, structured) else result
    if isinstance(others, dict) and NEXT_STEP not in others:
        # What the tool itself repeats of the directive is made the same as the directive.
        repeats = without_next_step(structured) is not structured
        tool = None if repeats else await listed(called)
        if repeats or (tool is not None and has_next_step(tool.output_schema or {})):
            step = NextStep(tool=directive.tool, arguments=directive.arguments)
            others = {**others, NEXT_STEP: step.model_dump()}
    return _changed(result, meta, others, [_in_words(directive)])


def advertised_in(capabilities: dict[str, Any], *places: str) -> dict[str, Any]:
    """Return a server's capabilities with the extension among the members `places`.

    2025-11-25 has no `extensions` among its capabilities, so the same settings also stand under
    `experimental` there, which it does have (TC-S-01).
    """
    return {
        **capabilities,
        **{at: {**(capabilities.get(at) or {}), IDENTIFIER: SETTINGS} for at in places},
    }


def _in_words(directive: Directive) -> TextContent:
    """Return the directive in words, for the model of a client that does not follow directives.

    It suggests, since to a model it is what somebody else wrote. It ends with the arguments as
    JSON, so that no value is read as part of the sentence. It is marked in its `_meta`, so that a
    client that does follow can leave it out (TC-S-05).
    """
    tool = json.dumps(directive.tool, ensure_ascii=False)
    arguments = json.dumps(directive.arguments, ensure_ascii=False)
    return TextContent(
        type="text",
        text=(
            "Next step suggested by this server: unless the result of that call already follows "
            f"here, call the tool {tool} once, with exactly these arguments: {arguments}"
        ),
        annotations=Annotations(audience=["assistant"]),
        _meta={IDENTIFIER: {"describes": META_KEY}},
    )


async def _fit(
    result: AnyResult, reading: Found | Malformed, value: Any, listed: Listed
) -> Directive:
    """Return the directive that `value` is read as. Raises `DirectiveDropped` if it is not fit."""
    wire = result
    if isinstance(wire, BaseModel):
        wire = on_the_wire(wire.model_copy(update={"meta": None}))
    if wire.get("resultType", "task" if "task" in wire else "complete") != "complete":
        raise DirectiveDropped("an interim result cannot name a next tool")
    if isinstance(reading, Malformed):
        raise DirectiveDropped(reading.reason)
    if reading.deprecated_alias:
        raise DirectiveDropped("'name' is for reading only; a server sends 'tool'")
    directive = reading.directive
    title = value.get("title", "-")
    if not is_title(title) or CONTROL.search(title) or not DIRECTION_MARKS.isdisjoint(title):
        raise DirectiveDropped(
            f"the title must be plain text of 1 to {MAX_TITLE} characters on one line"
        )
    if all(words_a_directive(item) or _is_blank(item) for item in wire.get("content") or ()):
        raise DirectiveDropped(
            "the result has no other content, for people whose client ignores it"
        )
    name = f"the tool {directive.tool!r}"
    tool = await listed(directive.tool)
    if tool is None:
        raise DirectiveDropped(f"this server lists no tool {directive.tool!r}")
    if hidden_from_model(tool.meta):
        raise DirectiveDropped(f"{name} is not meant for the model to call")
    problem = argument_problem(tool.input_schema, directive.arguments)
    if problem is not None:
        raise DirectiveDropped(problem)
    if undeclared := undeclared_arguments(tool.input_schema, directive.arguments):
        raise DirectiveDropped(f"{name} has no argument {', '.join(undeclared)}")
    if not keeps_its_value(directive.arguments):
        raise DirectiveDropped("a number that other readers take for another; send it as a string")
    return directive


def _is_blank(item: dict[str, Any]) -> bool:
    """Return whether a content item is a text that says nothing."""
    text = item.get("text")
    return item.get("type") == "text" and isinstance(text, str) and not text.strip()


def _without_own_copy(structured: Any) -> Any:
    """Return structured content without what its tool repeats of the directive, or null for it."""
    if isinstance(structured, dict) and structured.get(NEXT_STEP, ...) is None:
        return {name: value for name, value in structured.items() if name != NEXT_STEP}
    return without_next_step(structured)


def _changed(
    result: AnyResult,
    meta: dict[str, Any] | None,
    structured: Any,
    words: Sequence[TextContent] = (),
) -> AnyResult:
    """Return the result with another `_meta`, other structured content, and words at its end."""
    if isinstance(result, dict):
        told = {key: member for key, member in result.items() if key != "_meta"}
        told |= {} if meta is None else {"_meta": meta}
        told |= {} if structured is _structured(result) else {"structuredContent": structured}
        return {**told, "content": [*told["content"], *map(on_the_wire, words)]} if words else told
    if not isinstance(result, CallToolResult):
        return result.model_copy(update={"meta": meta})
    changed: dict[str, Any] = {"meta": meta, "content": [*result.content, *words]}
    if structured is not result.structured_content:
        changed["structured_content"] = structured
    return result.model_copy(update=changed)


def _structured(result: AnyResult | None) -> Any:
    return _member(result, "structuredContent", "structured_content")


def _member(result: AnyResult | None, name: str, attribute: str) -> Any:
    # Another extension can have answered with JSON, or with a result of its own.
    return result.get(name) if isinstance(result, dict) else getattr(result, attribute, None)
