"""A server's results before they are sent: check the directive, describe it for some clients."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from mcp_types import Annotations, CallToolResult, TextContent, Tool
from pydantic import BaseModel, ConfigDict, Field

from tool_chaining.arguments import argument_problem
from tool_chaining.content import (
    NEXT_STEP,
    has_next_step,
    hidden_from_model,
    on_the_wire,
    undeclared_arguments,
    without_next_step,
    words_a_directive,
)
from tool_chaining.directive import (
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
from tool_chaining.result import quoted
from tool_chaining.text import CONTROL, DIRECTION_MARKS
from tool_chaining.values import keeps_its_value

logger = logging.getLogger(__name__)

AnyResult = BaseModel | dict[str, Any]
"""A result as a model of the SDK, or as JSON."""

Listing = Callable[[], Awaitable[Sequence[Tool]]]
"""Returns the tools as the server lists them now."""


class NextStep(BaseModel):
    """The directive in structured content, for hosts that show their model only that (TC-S-05).

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
            "description": "The call that this server suggests next, if no client follows it."
        },
    )

    tool: str = Field(description="The tool that this server suggests to call next, once.")
    arguments: dict[str, Any] = Field(description="Its arguments, exactly.")


class DirectiveDropped(Exception):
    """A directive cannot be sent; the message says why, without any value of it."""


async def check_outgoing(
    result: AnyResult | None,
    *,
    called: str,
    listed: Listing,
    declared: bool,
    strict: bool = False,
) -> AnyResult | None:
    """Return the result of a `tools/call` as it may be sent. `called` is the tool that returned it.

    A directive that breaks a rule is logged as an error and dropped (TC-S-08, TC-S-11 to TC-S-17,
    TC-S-26, TC-S-27); with `strict`, `DirectiveDropped` is raised. A valid directive is sent with
    its defined members only. Unless the client `declared` the extension, the result also describes
    the directive as text.
    """
    meta, structured = _member(result, "_meta", "meta"), _structured(result)
    reading = read_directive(meta)
    if result is None or meta is None or isinstance(reading, Absent):
        return result
    try:
        tools = {tool.name: tool for tool in await listed()}
        directive = _valid_directive(result, reading, meta[META_KEY], tools)
    except DirectiveDropped as problem:
        next_tool = f" {quoted(reading.directive.tool)}" if isinstance(reading, Found) else ""
        what = f"nextTool{next_tool} of tool {quoted(called)}: {problem}"
        if strict:
            raise DirectiveDropped(f"Cannot send {what}") from None
        logger.error("Dropped %s", what)
        kept = {key: member for key, member in meta.items() if key != META_KEY}
        return _changed(result, kept or None, without_next_step(structured))
    # Only the defined members of the directive go out (TC-S-11).
    sent, meta = meta, {**meta, META_KEY: directive.to_wire()}
    others = _without_own_copy(structured)
    if declared:
        return _changed(result, meta, others) if (meta, others) != (sent, structured) else result
    if isinstance(others, dict) and NEXT_STEP not in others:
        # A `nextStep` that the tool filled in itself is replaced by the directive.
        repeats = without_next_step(structured) is not structured
        returned_by = tools.get(called)
        if repeats or (returned_by and has_next_step(returned_by.output_schema or {})):
            step = NextStep(tool=directive.tool, arguments=directive.arguments)
            others = {**others, NEXT_STEP: step.model_dump()}
    return _changed(result, meta, others, [_description(directive)])


def advertised_in(capabilities: dict[str, Any], *places: str) -> dict[str, Any]:
    """Return a server's capabilities with the extension in each of the members `places`.

    The capabilities of 2025-11-25 have `experimental` and no `extensions`. So a server of that
    revision advertises the extension in both (TC-S-01).
    """
    return {
        **capabilities,
        **{at: {**(capabilities.get(at) or {}), IDENTIFIER: SETTINGS} for at in places},
    }


def _description(directive: Directive) -> TextContent:
    """Return the directive as text, for the model of a client that does not follow directives.

    The text only suggests the call: a model should not obey text of a third party. The arguments
    come last, as JSON, so that no value is read as part of the sentence. A mark in `_meta` lets a
    client that follows directives remove the item (TC-S-05).
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


def _valid_directive(
    result: AnyResult, reading: Found | Malformed, value: Any, tools: Mapping[str, Tool]
) -> Directive:
    """Return the directive of a result. Raises `DirectiveDropped` if it breaks a rule."""
    wire = result
    if isinstance(wire, BaseModel):
        wire = on_the_wire(wire.model_copy(update={"meta": None}))
    if wire.get("resultType", "task" if "task" in wire else "complete") != "complete":
        raise DirectiveDropped("an interim result cannot name a next tool")
    if isinstance(reading, Malformed):
        raise DirectiveDropped(reading.reason)
    if reading.deprecated_alias:
        raise DirectiveDropped("it has the deprecated member 'name'; send 'tool' instead")
    directive = reading.directive
    title = value.get("title", "-")
    if not is_title(title) or CONTROL.search(title) or not DIRECTION_MARKS.isdisjoint(title):
        raise DirectiveDropped(
            f"the title must be plain text of 1 to {MAX_TITLE} characters on one line"
        )
    if all(words_a_directive(item) or _is_blank(item) for item in wire.get("content") or ()):
        raise DirectiveDropped("the result has no other content, which users of other clients need")
    name, tool = quoted(directive.tool), tools.get(directive.tool)
    if tool is None:
        near = get_close_matches(directive.tool, tools, n=1)
        hint = f". Did you mean {quoted(near[0])}?" if near else ""
        raise DirectiveDropped(f"this server lists no tool {name}{hint}")
    if hidden_from_model(tool.meta):
        raise DirectiveDropped(f"the tool {name} is not meant for the model to call")
    problem = argument_problem(tool.input_schema, directive.arguments)
    if problem is not None:
        raise DirectiveDropped(problem)
    if undeclared := undeclared_arguments(tool.input_schema, directive.arguments):
        raise DirectiveDropped(f"the tool {name} has no argument {', '.join(undeclared)}")
    if not keeps_its_value(directive.arguments):
        raise DirectiveDropped("a number is not exact as a double; send it as a string")
    return directive


def _is_blank(item: dict[str, Any]) -> bool:
    """Return whether a content item is an empty text."""
    text = item.get("text")
    return item.get("type") == "text" and isinstance(text, str) and not text.strip()


def _without_own_copy(structured: Any) -> Any:
    """Return structured content without the tool's own `nextStep`: a directive, or null."""
    if isinstance(structured, dict) and structured.get(NEXT_STEP, ...) is None:
        return {name: value for name, value in structured.items() if name != NEXT_STEP}
    return without_next_step(structured)


def _changed(
    result: AnyResult,
    meta: dict[str, Any] | None,
    structured: Any,
    words: Sequence[TextContent] = (),
) -> AnyResult:
    """Return the result with this `_meta` and structured content, and `words` at its end."""
    if isinstance(result, dict):
        sent = {key: member for key, member in result.items() if key != "_meta"}
        sent |= {} if meta is None else {"_meta": meta}
        sent |= {} if structured is _structured(result) else {"structuredContent": structured}
        return {**sent, "content": [*sent["content"], *map(on_the_wire, words)]} if words else sent
    if not isinstance(result, CallToolResult):
        return result.model_copy(update={"meta": meta})
    changed: dict[str, Any] = {"meta": meta, "content": [*result.content, *words]}
    if structured is not result.structured_content:
        changed["structured_content"] = structured
    return result.model_copy(update=changed)


def _structured(result: AnyResult | None) -> Any:
    return _member(result, "structuredContent", "structured_content")


def _member(result: AnyResult | None, name: str, attribute: str) -> Any:
    # Another extension may have returned JSON, or a result type of its own.
    return result.get(name) if isinstance(result, dict) else getattr(result, attribute, None)
