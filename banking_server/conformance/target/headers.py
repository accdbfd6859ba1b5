"""The headers in which a request of revision 2026-07-28 repeats parts of its own message.

Whoever stands between client and server routes by them: `Mcp-Method`, `Mcp-Name`, and one
`Mcp-Param-*` for each argument whose schema has `x-mcp-header`. A server refuses a request whose
headers and body differ, so the suite has to write them well.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from banking_server.conformance.message import PROTOCOL_VERSION_KEY, Json, within

ANNOTATION: Final = "x-mcp-header"
"""The keyword of an argument's schema that names its header."""

_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?|")
"""Printable ASCII that neither begins nor ends with a space: it survives as it stands."""

_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""What RFC 9110 allows as part of the name of a header."""

_TYPES: Final = ("string", "integer", "boolean")
"""Types of arguments that may have a header. A `number` may not: languages write it differently."""


def mirrored(message: Json, input_schema: object = None) -> dict[str, str]:
    """Return the headers that go with `message`; none if it is not of revision 2026-07-28.

    `input_schema` is that of the tool that the message calls, if it calls one.
    """
    params = message.get("params") or {}
    version = params.get("_meta", {}).get(PROTOCOL_VERSION_KEY)
    if version is None:
        return {}
    headers = {"mcp-protocol-version": version, "mcp-method": message["method"]}
    if message["method"] == "tools/call":
        headers["mcp-name"] = encoded(params["name"])
        headers |= of_arguments(input_schema, params.get("arguments") or {})
    return headers


def encoded(text: str) -> str:
    """Return `text` as the value of a header: in Base64 if it would not survive as it stands."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='surrogatepass')).decode()}?="


def of_arguments(input_schema: object, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of a call.

    An argument that is absent, null, an object or a list has no header, and neither has one whose
    annotation breaks the rules: clients do not call such a tool.
    """
    headers: dict[str, str] = {}
    for path, name in _annotated(input_schema, ()):
        text = _as_text(_at(path, arguments))
        if text is not None:
            headers[f"Mcp-Param-{name}"] = encoded(text)
    return headers


def _annotated(schema: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and the header of each annotated argument, however deep in `properties`."""
    for name, part in within(schema, "properties").items():
        if not isinstance(part, dict):
            continue
        header = part.get(ANNOTATION)
        if isinstance(header, str) and _TOKEN.fullmatch(header) and part.get("type") in _TYPES:
            yield (*path, name), header
        yield from _annotated(part, (*path, name))


def _at(path: tuple[str, ...], arguments: object) -> object:
    value = arguments
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _as_text(value: object) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            return None
