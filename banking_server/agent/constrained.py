"""The JSON schema of a reply in the prompt form: an answer to the user, or one call of one tool.

An endpoint that holds the model to it leaves it no way to invent a tool, to leave out what a call
needs, or to put a number in quotation marks. Only what every converter of schemas to grammars
understands is kept of a tool's own schema; the whole of it is checked before the call is made.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from banking_server.agent.reply import MESSAGE, REPLY_TO_USER
from banking_server.agent.toolbox import DEPTH, OfferedTool, resolved
from banking_server.chaining.arguments import argument_problem

_SIMPLE: Final = ("string", "number", "integer", "boolean")

ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "tool": {"const": REPLY_TO_USER},
        "arguments": {
            "type": "object",
            "properties": {MESSAGE: {"type": "string"}},
            "required": [MESSAGE],
            "additionalProperties": False,
        },
    },
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}
"""A reply that can only be an answer to the user."""


def reply_schema(tools: Sequence[OfferedTool]) -> dict[str, Any]:
    """Return the schema of a reply of a model that has these tools."""
    calls = [
        {
            **ANSWER,
            "properties": {
                "tool": {"const": offered.name},
                "arguments": _plain(offered.tool.input_schema, offered.tool.input_schema),
            },
        }
        for offered in tools
    ]
    return {"anyOf": [ANSWER, *calls]} if calls else ANSWER


def fits(schema: dict[str, Any]) -> Callable[[str], bool]:
    """Return a function that says whether the text of a reply is JSON that fits a schema."""

    def fit(text: str) -> bool:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and argument_problem(schema, value) is None

    return fit


def _plain(part: Any, root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return what a grammar needs of a schema, without references and without null."""
    schema = resolved(part, root)
    options = schema.get("anyOf") or schema.get("oneOf")
    if depth > DEPTH:
        return {}
    if isinstance(options, list):
        plain = [
            _plain(option, root, depth + 1)
            for option in options
            if resolved(option, root).get("type") != "null"
        ]
        return plain[0] if len(plain) == 1 else {"anyOf": plain} if plain else {}
    for rule in ("const", "enum"):
        if rule in schema:
            return {rule: schema[rule]}
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [{"type": one} for one in kind if one in _SIMPLE]
        return kinds[0] if len(kinds) == 1 else {}
    if kind in _SIMPLE:
        return {"type": kind}
    if kind == "array":
        return {"type": "array", "items": _plain(schema.get("items"), root, depth + 1)}
    properties = schema.get("properties")
    if kind != "object" or not isinstance(properties, dict):
        return {"type": "object"} if kind == "object" else {}
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {name: _plain(given, root, depth + 1) for name, given in properties.items()},
        "required": [name for name in required or () if name in properties],
        "additionalProperties": False,
    }
