"""Content and tools as they stand on the wire: who sees what, and what it says.

Everything here takes parsed JSON of anybody's, and never raises, whatever it holds.
"""

from collections.abc import Mapping
from typing import Any

from banking_server.chaining.directive import IDENTIFIER, META_KEY


def for_user_alone(item: Mapping[str, Any]) -> bool:
    """Return whether a content item names the user, and nobody else, as its audience."""
    audience = _member(item.get("annotations"), "audience")
    return isinstance(audience, list) and bool(audience) and all(who == "user" for who in audience)


def for_user(item: Mapping[str, Any]) -> bool:
    """Return whether a content item is for the user's eyes: one without an audience is."""
    audience = _member(item.get("annotations"), "audience")
    return not isinstance(audience, list) or "user" in audience


def words_a_directive(item: Mapping[str, Any]) -> bool:
    """Return whether a content item is marked as a server's wording of its directive."""
    return bool(_member(_member(item.get("_meta"), IDENTIFIER), "describes") == META_KEY)


def hidden_from_model(tool_meta: object) -> bool:
    """Return whether a tool is kept from the model, by the tool's own `_meta`.

    MCP Apps keep tools for their interface with `ui.visibility`, a list without `"model"`. A
    visibility that is not such a list vouches for nothing, so it hides the tool too.
    """
    ui = _member(tool_meta, "ui")
    if not isinstance(ui, Mapping) or "visibility" not in ui:
        return False
    visibility = ui["visibility"]
    return "model" not in (visibility if isinstance(visibility, list) else [visibility])


def in_text(item: Mapping[str, Any], *, note: str = "") -> str:
    """Return a content item as text; `note` follows the name of what cannot be shown as such."""
    resource = item.get("resource")
    match item.get("type"):
        case "text":
            return str(item.get("text", ""))
        case "resource_link":
            return f"[{item.get('name')}: {item.get('uri')}]"
        case "resource" if isinstance(resource, Mapping):
            text = resource.get("text")
            return text if isinstance(text, str) else f"[{resource.get('uri')}{note}]"
        case kind:
            return f"[{kind}, {item.get('mimeType')}{note}]"


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
