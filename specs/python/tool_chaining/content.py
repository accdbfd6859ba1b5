"""Results, content items and tools as JSON: who may see them, and what they say.

All functions but `on_the_wire` take parsed JSON from any server and never raise. A member that
decides something is read carefully: a malformed one counts as the value that permits least.

- a hint of a tool (`Tool.hints`): absent, so the tool is destructive and open-world;
- `_meta.ui.visibility` of a tool: hidden from the model;
- `isError`: true, but null is absent;
- `audience`: the user only;
- `capabilities` (`negotiation`): not advertised;
- `_meta.nextTool` (`directive`): a malformed directive.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from tool_chaining.directive import IDENTIFIER, META_KEY, Directive

Json = dict[str, Any]
"""A JSON object, as it is on the wire."""

NEXT_STEP: Final = "nextStep"
"""The member of structured content in which a server can repeat a directive, for hosts that show
their model structured content only (TC-S-05)."""

FOLLOW_UPS: Final = "followUps"
"""The member of a merged result's structured content that reports the follow-up calls (TC-C-36)."""

NAME: Final = 128
"""The most characters of a tool's name that we repeat; MCP allows no more (TC-C-53)."""


_USER: Final = ["user"]
"""The audience of an item whose `audience` cannot be read."""


def json_string(text: str) -> str:
    """Return a server's text as a JSON string of at most 128 characters (TC-C-53).

    In quotes it does not look like our own text.
    """
    return json_text(text if len(text) <= NAME else f"{text[: NAME - 1]}\u2026")


def json_text(text: str) -> str:
    """Return a server's text as one JSON string, on one line and without invisible characters."""
    written = json.dumps(text, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in written)


def on_the_wire(item: Any) -> Json:
    """Return an SDK's content item, result or tool as the JSON on the wire."""
    sent: Json = item.model_dump(mode="json", by_alias=True, exclude_none=True)
    return sent


def member(value: object, name: str) -> Any:
    """Return a member of a JSON object; None if the value is not an object or lacks the member."""
    return value.get(name) if isinstance(value, Mapping) else None


def content_of(result: Mapping[str, Any]) -> list[Any]:
    """Return the content items of a result. A bare text or item counts as a list of one.

    Items that no client can read are left out: one without a type, or a text that is not a string.
    """
    content = result.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [item for item in _items(content) if _is_readable(item)]


def _items(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content] if isinstance(content, dict) else []


def _is_readable(item: object) -> bool:
    kind = member(item, "type")
    return isinstance(kind, str) and (kind != "text" or isinstance(member(item, "text"), str))


def is_error(result: Mapping[str, Any]) -> bool:
    """Return whether a result reports an error: `isError` is true, or malformed. Null is absent."""
    value = result.get("isError")
    return value is not None and value is not False


def for_user_alone(item: object) -> bool:
    """Return whether a content item is for the user only, by its `audience`."""
    audience = _audience(item)
    return bool(audience) and all(who == "user" for who in audience)


def for_user(item: object) -> bool:
    """Return whether a content item is for the user; an item without `audience` is."""
    audience = _audience(item)
    return audience is None or "user" in audience


def _audience(item: object) -> Any:
    """Return the audience of an item, None if it has none. A malformed one means the user alone."""
    audience = member(member(item, "annotations"), "audience")
    if audience is None:
        return None
    readable = isinstance(audience, list) and all(isinstance(who, str) for who in audience)
    return audience if readable else _USER


def describes_directive(item: object) -> bool:
    """Return whether a content item is marked as text that describes a directive (TC-S-05)."""
    return bool(member(member(member(item, "_meta"), IDENTIFIER), "describes") == META_KEY)


def suggestion(directive: Directive) -> Json:
    """Return the item that describes a directive to a model, in the form of TC-S-05.

    The text only suggests the call: a model should not obey text of a third party. The arguments
    come last, as JSON, so that no value reads like part of the sentence. A client that follows
    directives finds the item by its mark and removes it.
    """
    tool = json.dumps(directive.tool, ensure_ascii=False)
    arguments = json.dumps(directive.arguments, ensure_ascii=False)
    return {
        "type": "text",
        "text": (
            "Next step suggested by this server: unless the result of that call already follows "
            f"here, call the tool {tool} once, with exactly these arguments: {arguments}"
        ),
        "annotations": {"audience": ["assistant"]},
        "_meta": {IDENTIFIER: {"describes": META_KEY}},
    }


def without_next_step(structured: Any) -> Any:
    """Return structured content without the member that repeats a directive (TC-S-05).

    A member `nextStep` that is not an object with a `tool` means something else, and stays.
    """
    if not isinstance(member(member(structured, NEXT_STEP), "tool"), str):
        return structured
    return {name: value for name, value in structured.items() if name != NEXT_STEP}


def has_next_step(output_schema: object) -> bool:
    """Return whether an output schema has a member `nextStep` that can hold a tool and arguments.

    The whole schema is searched, with its alternatives and definitions. A member `nextStep` that
    holds no such object means something else.
    """
    is_named = can_hold = False
    left: list[Any] = [output_schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            members = node.get("properties")
            if isinstance(members, dict):
                is_named = is_named or NEXT_STEP in members
                can_hold = can_hold or ("tool" in members and "arguments" in members)
                if is_named and can_hold:
                    return True
            left += node.values()
        elif isinstance(node, list):
            left += node
    return False


def visibility(tool_meta: object) -> Any:
    """Return `ui.visibility` of a tool's `_meta`; the list `["model"]` if it has none."""
    ui = member(tool_meta, "ui")
    return ui.get("visibility", ["model"]) if isinstance(ui, Mapping) else ["model"]


def hidden_from_model(tool_meta: object) -> bool:
    """Return whether the tool's `_meta` hides it from the model (TC-C-20).

    MCP Apps reserve tools for their user interface by `ui.visibility`, a list without `"model"`.
    A `visibility` of another type hides the tool too, unless it is the string `"model"`.
    """
    seen_by = visibility(tool_meta)
    return "model" not in (seen_by if isinstance(seen_by, list) else [seen_by])


def in_text(item: object) -> str:
    """Return a content item as text: what it is, in brackets, if it is not text."""
    resource = member(item, "resource")
    match member(item, "type"):
        case "text":
            return str(member(item, "text") or "")
        case "resource_link":
            return f"[{member(item, 'name')}: {member(item, 'uri')}]"
        case "resource" if isinstance(resource, Mapping):
            text = resource.get("text")
            return text if isinstance(text, str) else f"[{resource.get('uri')}]"
        case kind:
            known = [str(part) for part in (kind, member(item, "mimeType")) if part is not None]
            return f"[{', '.join(known) or 'an item of no kind'}]"
