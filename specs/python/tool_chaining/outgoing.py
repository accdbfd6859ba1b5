"""A server's results before they are sent: check the directive, describe it for some clients."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from traceback import walk_tb
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tool_chaining.arguments import ArgumentCheck
from tool_chaining.caller import REFUSALS, error_code
from tool_chaining.content import (
    NEXT_STEP,
    Json,
    describes_directive,
    has_next_step,
    json_string,
    suggestion,
    without_next_step,
)
from tool_chaining.directive import (
    MAX_TITLE,
    META_KEY,
    Absent,
    Directive,
    Found,
    Malformed,
    is_title,
    read_directive,
)
from tool_chaining.tools import Tool
from tool_chaining.values import is_i_json

logger = logging.getLogger(__name__)

Listing = Callable[..., Awaitable[Mapping[str, Tool]]]
"""Returns the tools that the server now lists to this caller, by name: at least those named in the
arguments, or all tools if one of those is not listed."""


class NextStep(BaseModel):
    """The directive in structured content, for hosts that show their model only that (TC-S-05).

    A tool whose output schema has the optional member `nextStep`, of this type, gets it filled in
    by `add_tool_chaining`; the tool itself leaves it out::

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


class OutgoingCheck:
    """Checks the results of one server before they are sent."""

    def __init__(self) -> None:
        self._arguments = ArgumentCheck()

    async def __call__(
        self, result: Json, *, called: str, listed: Listing, declared: bool, strict: bool = False
    ) -> Json:
        """Return the result of a `tools/call` as it may be sent; `called` is the called tool.

        A directive that breaks a rule is logged as an error and dropped (TC-S-08, TC-S-12 to
        TC-S-17, TC-S-26, TC-S-27); with `strict`, this raises `DirectiveDropped`. A valid directive
        is sent with its defined members only. Unless the client `declared` the extension, the
        result also describes the directive to the model.
        """
        meta = result.get("_meta")
        reading = read_directive(meta)
        if meta is None or isinstance(reading, Absent):
            return result
        named = json_string(reading.directive.tool) if isinstance(reading, Found) else "value"
        what = f"nextTool {named} of tool {json_string(called)}"
        try:
            target = reading.directive.tool if isinstance(reading, Found) else called
            tools = await listed(target, called)
            directive = self._valid(result, reading, tools)
        except DirectiveDropped as dropped:
            if strict:
                raise DirectiveDropped(f"Cannot send {what}: {dropped}") from None
            logger.error("Dropped %s: %s", what, dropped)
            return without_directive(result)
        sent = _without_own_copy({**result, "_meta": {**meta, META_KEY: directive.to_wire()}})
        if declared:
            return sent
        structured, tool = sent.get("structuredContent"), tools.get(called)
        if isinstance(structured, dict) and NEXT_STEP not in structured:
            # A `nextStep` that the tool filled in itself is replaced by the directive.
            repeated = NEXT_STEP in (result["structuredContent"] or ())
            if repeated or (tool is not None and has_next_step(tool.wire.get("outputSchema"))):
                step = {"tool": directive.tool, "arguments": directive.arguments}
                sent["structuredContent"] = {**structured, NEXT_STEP: step}
        return {**sent, "content": [*sent["content"], suggestion(directive)]}

    def _valid(
        self, result: Json, reading: Found | Malformed, tools: Mapping[str, Tool]
    ) -> Directive:
        """Return the directive of a result. Raises `DirectiveDropped` if it breaks a rule."""
        if result.get("resultType", "task" if "task" in result else "complete") != "complete":
            raise DirectiveDropped("an interim result cannot name a next tool")
        if isinstance(reading, Malformed):
            raise DirectiveDropped(reading.reason)
        directive = reading.directive
        if not is_title(result["_meta"][META_KEY].get("title", "-")):
            raise DirectiveDropped(
                f"the title must be plain text of 1 to {MAX_TITLE} characters on one line"
            )
        if all(
            describes_directive(item) or _is_blank(item) for item in result.get("content") or ()
        ):
            raise DirectiveDropped(
                "the result has no other content, which users of other clients need"
            )
        tool = tools.get(directive.tool)
        if tool is None:
            near = get_close_matches(directive.tool, tools, n=1)
            hint = f". Did you mean {json_string(near[0])}?" if near else ""
            raise DirectiveDropped(f"this server lists no tool {json_string(directive.tool)}{hint}")
        if tool.hidden:
            name = json_string(tool.name)
            raise DirectiveDropped(f"the tool {name} is not meant for the model to call")
        problem = self._arguments.problem(tool.name, tool.input_schema, directive.arguments)
        if problem is not None:
            written = result["_meta"][META_KEY]
            others = [name for name in written if name not in ("tool", "name", "title")]
            if others and "arguments" not in written:
                problem += f'. You sent {json_string(others[0])}; the member is "arguments"'
            raise DirectiveDropped(problem)
        if not is_i_json(directive.to_wire()):
            raise DirectiveDropped(
                "it is not I-JSON: a number is not exact as a double, so send it as a string, or a "
                "text contains a noncharacter"
            )
        return directive


def refuses_too_late(error: Exception, caller: Any) -> bool:
    """Return whether an exception of a tool's own function would look like a refusal (TC-S-36).

    `caller` is the SDK's function that calls it. What the SDK raises before that stays a refusal.
    """
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return error_code(error) in REFUSALS and any(f.f_code is caller.__code__ for f in frames)


def without_directive(result: Json) -> Json:
    """Return a result without its directive, and without the member that repeats it."""
    kept = {key: member for key, member in result["_meta"].items() if key != META_KEY}
    sent = {**result, "_meta": kept}
    if not kept:
        del sent["_meta"]
    if "structuredContent" in sent:
        sent["structuredContent"] = without_next_step(sent["structuredContent"])
    return sent


def _is_blank(item: Json) -> bool:
    """Return whether a content item is an empty text."""
    text = item.get("text")
    return item.get("type") == "text" and isinstance(text, str) and not text.strip()


def _without_own_copy(result: Json) -> Json:
    """Return a result without the tool's own `nextStep`: a directive, or null."""
    structured = result.get("structuredContent")
    if not isinstance(structured, dict) or NEXT_STEP not in structured:
        return result
    if structured[NEXT_STEP] is not None:
        return {**result, "structuredContent": without_next_step(structured)}
    kept = {name: value for name, value in structured.items() if name != NEXT_STEP}
    return {**result, "structuredContent": kept}
