"""The parts of a reply: the directive, and how the call ended."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.names import IDENTIFIER, META_KEY
from tool_chaining_conformance.target.channel import LEVELS, is_deeper
from tool_chaining_conformance.target.connection import Reply, ToolCall
from tool_chaining_conformance.values import identity, quote, same, texts_in

CallKey = tuple[str, str]
"""The identity of a call: the tool and its canonical arguments."""


OTHER_NAMES: Final = {
    "tool": ("name", "toolName", "tool_name", "nextTool", "Tool"),
    "arguments": ("args", "params", "parameters", "input", "argument", "Arguments"),
}
"""The members of a directive, and what authors write in their place."""


def key_of(tool: str, arguments: Json) -> CallKey:
    """Return the identity of a call with these arguments."""
    return tool, identity(arguments)


@dataclass(frozen=True)
class SeenDirective:
    """A directive as a server sent it, well-formed or not."""

    value: Any
    faults: tuple[str, ...] = ()
    """Its violations of I-JSON."""

    @property
    def tool(self) -> str | None:
        """The tool that it names; None if it names none."""
        tool = self.value.get("tool") if isinstance(self.value, dict) else None
        return tool if isinstance(tool, str) and tool else None

    @property
    def misspelt(self) -> str | None:
        """Advice about a member under another name, if a member that is read is missing."""
        given = self.value if isinstance(self.value, dict) else {}
        for name, others in OTHER_NAMES.items():
            wrong = [other for other in others if other in given]
            if wrong and name not in given:
                return f"You sent `{wrong[0]}`; the member is `{name}`."
        return None

    @property
    def arguments(self) -> Json | None:
        """Its arguments; None if they are not an object."""
        if not isinstance(self.value, dict):
            return None
        arguments = self.value.get("arguments", {})
        return arguments if isinstance(arguments, dict) else None

    @property
    def key(self) -> CallKey | None:
        """The identity of the call that it asks for; None if it is malformed."""
        if self.tool is None or self.arguments is None:
            return None
        return key_of(self.tool, self.arguments)


def carries_directive(result: object) -> bool:
    """Return whether a result has the directive's member in its `_meta`, whatever it holds."""
    return META_KEY in within(result, "_meta")


def directive_of(reply: Reply) -> SeenDirective | None:
    """Return the directive on a complete result, well-formed or not, or None."""
    return written_directive(reply) if reply.kind == "complete" else None


def written_directive(reply: Reply) -> SeenDirective | None:
    """Return the value of `nextTool` on a result of any kind."""
    result = reply.result
    if result is None or not carries_directive(result):
        return None
    return SeenDirective(result["_meta"][META_KEY], reply.faults)


def is_error(call: ToolCall) -> bool:
    """Return whether the result of a call says that the tool failed."""
    return (call.final.result or {}).get("isError") is True


def is_refused(call: ToolCall) -> bool:
    """Return whether a call ended in a protocol error, or in a result that is an error."""
    return call.final.error is not None or is_error(call)


def ending(call: ToolCall) -> str:
    """Return in one line how a call ended, with its directive."""
    reply = call.final
    if reply.error is not None:
        return f"error {reply.error.get('code')} {quote(reply.error.get('message'))}"
    if reply.kind != "complete":
        kind = (reply.result or {}).get("resultType", "complete")
        # On 2025-11-25 it is the member that makes it a task.
        why = "a member task" if kind == "complete" else f"resultType {quote(kind)}"
        return f"a result that is not complete, with {why}"
    seen = directive_of(reply)
    ended = "isError true" if is_error(call) else "a result"
    return f"{ended} with " + ("no directive" if seen is None else f"nextTool {quote(seen.value)}")


def refusal(call: ToolCall) -> tuple[object, bool]:
    """Return the code of a call's protocol error, and whether its result has `isError`.

    It is `(None, False)` if the call was not refused.
    """
    return None if call.final.error is None else call.final.error.get("code"), is_error(call)


def content_of(reply: Reply) -> list[Json]:
    """Return the content items of a result."""
    content = (reply.result or {}).get("content")
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def structured_content_of(reply: Reply) -> Json:
    """Return the structured content of a result; empty if it has none."""
    return within(reply.result, "structuredContent")


# The words: a content item that repeats the directive for a model, and a member `nextStep`.

NEXT_STEP: Final = "nextStep"
"""The member of structured content that repeats the next step."""


def is_marked(item: Json) -> bool:
    """Return whether a content item has the mark of the words."""
    return within(item, "_meta", IDENTIFIER).get("describes") == META_KEY


def has_next_step(structured: Json) -> bool:
    """Return whether the member `nextStep` is words: beside a directive, an object with a tool."""
    return isinstance(within(structured, NEXT_STEP).get("tool"), str)


def without_next_step(structured: Json) -> Json:
    """Return structured content without the words."""
    words = has_next_step(structured)
    return {name: part for name, part in structured.items() if not (words and name == NEXT_STEP)}


def objects_in(text: str) -> Iterator[Any]:
    """Yield every JSON object in a text that is not nested deeper than `LEVELS`."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if not is_deeper(found, LEVELS):
            yield found
        start = text.find("{", end)


def objects_within(value: Any) -> Iterator[Json]:
    """Yield each object in a JSON value and in its texts, those in other objects too."""
    if isinstance(value, str):
        value = list(objects_in(value))
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from objects_within(part)


def arguments_in(text: str) -> Iterator[Json]:
    """Yield each object that a text may name as arguments, those in other objects too.

    If the whole text is JSON, only the outer ones: the rest is data, in which a call has a form.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return objects_within(text)
    return objects_in(text)


def words_of(items: Sequence[Json], seen: SeenDirective | None) -> list[Json]:
    """Return the items that repeat the directive for the model: those with the mark, or those that
    only the model gets and that name the call."""
    return [
        item
        for item in items
        if is_marked(item) or (_audience(item) == ["assistant"] and names_call(item, seen))
    ]


def names_call(value: Json, seen: SeenDirective | None) -> bool:
    """Return whether a text in a value names the directive's tool and has its arguments.

    Content items for the user only are ignored. Without arguments, naming the tool is not asking
    for the call, so no text is searched.
    """
    if seen is None or seen.tool is None or not seen.arguments or is_for_user(value):
        return False
    return any(
        names(text, seen.tool) and any(same(found, seen.arguments) for found in arguments_in(text))
        for text in texts_in(value)
    )


def names(text: str, tool: str) -> bool:
    """Return whether a text has the name of a tool as a whole word."""
    return re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", text) is not None


def is_for_user(item: Json) -> bool:
    """Return whether a content item is for the user alone."""
    return _audience(item) == ["user"]


def _audience(item: Json) -> object:
    return within(item, "annotations").get("audience")


# The ending of one call in parts, for comparison.

Member = tuple[str, str]
"""A part of a result, and a member or an item of it; empty: the part itself."""

PART_NAMES: Final = {
    "refusal": "whether it is an error",
    "tool": "the tool that is named",
    "arguments": "the arguments of the directive",
    "title": "the title of the directive",
    "content": "the content",
    "structured": "the structured content",
    "words": "whether the words repeat the directive",
}
PARTS: Final = frozenset(PART_NAMES)


def members_of(call: ToolCall) -> dict[Member, str]:
    """Return the value of each member of a result; an absent member is not included.

    The items that describe the directive are a part of their own, not of the content.
    """
    seen = directive_of(call.final)
    items, structured = content_of(call.final), structured_content_of(call.final)
    words = words_of(items, seen)
    members: dict[Member, str] = {
        ("refusal", ""): str(refusal(call)),
        ("words", ""): str(bool(words) or (seen is not None and has_next_step(structured))),
    }
    if seen is not None:
        structured = without_next_step(structured)
        members["tool", ""] = f"malformed: {identity(seen.value)}"
        if seen.key is not None:
            members["tool", ""] = seen.key[0]
            members |= {("arguments", k): identity(v) for k, v in (seen.arguments or {}).items()}
            if "title" in seen.value:
                members["title", ""] = identity(seen.value["title"])
    own = [item for item in items if item not in words]
    members |= {("content", str(place)): identity(item) for place, item in enumerate(own)}
    return members | {("structured", name): identity(item) for name, item in structured.items()}


def member_names(members: Iterable[Member]) -> str:
    """Return the names of members as text: of all but the tool, if another one or none is named."""
    others = [each for each in members if each[0] not in ("arguments", "title")]
    members = others if ("tool", "") in others else members
    return ", ".join(
        PART_NAMES[part] + (f" at /{name}" if name else "") for part, name in sorted(members)
    )
