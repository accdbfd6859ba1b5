"""Content items and tools as JSON: who may see them, and the text of an item.

All functions but `on_the_wire` and `json_string` take parsed JSON from any server and never raise.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from tool_chaining.directive import IDENTIFIER, META_KEY

NEXT_STEP: Final = "nextStep"
"""The member of structured content in which a server can repeat a directive, for hosts that show
their model structured content only."""

FOLLOW_UPS: Final = "followUps"
"""The member of a merged result's structured content that says what became of the follow-up calls
(TC-C-36)."""


NAME: Final = 128
"""Characters of a tool's name that are repeated at most; MCP allows no more."""


def json_string(text: str) -> str:
    """Return a server's text as a JSON string, so that it does not look like our own text.

    It has at most 128 characters between its quotes (TC-C-53).
    """
    shown = text if len(text) <= NAME else f"{text[: NAME - 1]}\u2026"
    return json.dumps(shown, ensure_ascii=False)


def on_the_wire(item: BaseModel) -> dict[str, Any]:
    """Return a content item, result or tool of an SDK as the JSON that is sent."""
    return item.model_dump(mode="json", by_alias=True, exclude_none=True)


def for_user_alone(item: Mapping[str, Any]) -> bool:
    """Return whether a content item is for the user only, by its `audience`."""
    audience = _member(item.get("annotations"), "audience")
    return isinstance(audience, list) and bool(audience) and all(who == "user" for who in audience)


def for_user(item: Mapping[str, Any]) -> bool:
    """Return whether a content item is for the user; an item without `audience` is."""
    audience = _member(item.get("annotations"), "audience")
    return not isinstance(audience, list) or "user" in audience


def words_a_directive(item: Mapping[str, Any]) -> bool:
    """Return whether a content item is marked as text that describes a directive (TC-S-05)."""
    return bool(_member(_member(item.get("_meta"), IDENTIFIER), "describes") == META_KEY)


def without_next_step(structured: Any) -> Any:
    """Return structured content without the member that repeats a directive (TC-S-05).

    A member `nextStep` that is no object with a `tool` means something else, and stays.
    """
    if not isinstance(_member(_member(structured, NEXT_STEP), "tool"), str):
        return structured
    return {name: value for name, value in structured.items() if name != NEXT_STEP}


def has_next_step(output_schema: Mapping[str, Any]) -> bool:
    """Return whether an output schema has a member `nextStep` that can hold a tool and arguments.

    The whole schema is searched, with its alternatives and definitions. A member `nextStep` that
    holds no such object means something else.
    """
    is_named = can_hold = False
    left: list[Any] = [dict(output_schema)]
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


def hidden_from_model(tool_meta: object) -> bool:
    """Return whether the tool's `_meta` hides it from the model (TC-C-42).

    MCP Apps reserve tools for their user interface by `ui.visibility`, a list without `"model"`.
    A `visibility` of another type hides the tool too, unless it is the string `"model"`.
    """
    ui = _member(tool_meta, "ui")
    if not isinstance(ui, dict) or "visibility" not in ui:
        return False
    visibility = ui["visibility"]
    return "model" not in (visibility if isinstance(visibility, list) else [visibility])


def in_text(item: Mapping[str, Any], *, note: str = "") -> str:
    """Return a content item as text: a name in brackets, with `note`, if it is not text."""
    resource = item.get("resource")
    match item.get("type"):
        case "text":
            return str(item.get("text", ""))
        case "resource_link":
            return f"[{item.get('name')}: {item.get('uri')}]"
        case "resource" if isinstance(resource, dict):
            text = resource.get("text")
            return text if isinstance(text, str) else f"[{resource.get('uri')}{note}]"
        case kind:
            known = [str(part) for part in (kind, item.get("mimeType")) if part is not None]
            return f"[{', '.join(known) or 'an item of no kind'}{note}]"


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
