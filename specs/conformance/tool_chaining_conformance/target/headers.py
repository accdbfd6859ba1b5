"""The headers in which a request of revision 2026-07-28 repeats parts of its own message.

Intermediaries use them for routing: `Mcp-Method`, `Mcp-Name`, and one `Mcp-Param-*` for each
argument whose schema has `x-mcp-header`. A server refuses a request whose headers and body differ,
so the suite must write them correctly.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Final

from tool_chaining_conformance.message import PROTOCOL_VERSION_KEY, Json, within

ANNOTATION: Final = "x-mcp-header"
"""The keyword of an argument's schema that names its header."""

_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?|")
"""Printable ASCII that does not begin or end with a space. It needs no encoding."""

_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A part of a header's name, as RFC 9110 allows it."""

_TYPES: Final = ("string", "integer", "boolean")
"""Types of arguments that may have a header. Not `number`: languages write it differently."""


def mirrored_headers(message: Json, input_schema: object = None) -> dict[str, str]:
    """Return the headers for `message`; none if it is not of revision 2026-07-28.

    `input_schema` is the input schema of the tool that the message calls, if it calls one.
    """
    params = message.get("params") or {}
    version = params.get("_meta", {}).get(PROTOCOL_VERSION_KEY)
    if version is None:
        return {}
    headers = {"mcp-protocol-version": version, "mcp-method": message["method"]}
    if message["method"] == "tools/call":
        headers["mcp-name"] = header_value(params["name"])
        headers |= argument_headers(input_schema, params.get("arguments") or {})
    return headers


def header_value(text: str) -> str:
    """Return `text` as the value of a header, in Base64 if needed."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='surrogatepass')).decode()}?="


def argument_headers(input_schema: object, arguments: object) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of a call, also for nested `properties`.

    An argument that is absent, null, an object or a list has no header. An argument with an invalid
    annotation has none either: clients do not call such a tool.
    """
    headers: dict[str, str] = {}
    for name, part in within(input_schema, "properties").items():
        value = arguments.get(name) if isinstance(arguments, Mapping) else None
        header, kind = (within(part).get(keyword) for keyword in (ANNOTATION, "type"))
        is_right = isinstance(header, str) and _TOKEN.fullmatch(header) and kind in _TYPES
        if is_right and isinstance(value, str | int | float):
            text = json.dumps(value) if isinstance(value, bool) else str(value)
            headers[f"Mcp-Param-{header}"] = header_value(text)
        headers |= argument_headers(part, value)
    return headers
