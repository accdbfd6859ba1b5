"""Checks of the call that a directive asks for: its tool, its arguments, no secrets."""

import binascii
import html
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.report.judgement import Finding, NotApplicable, Untestable
from tool_chaining_conformance.report.redaction import SHORTEST
from tool_chaining_conformance.server.bounded import CannotTell, first_fault
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import (
    DirectiveBesideSecrets,
    DirectiveOfIntermediary,
    PassedOn,
    ResultWithDirective,
)
from tool_chaining_conformance.server.reading import SeenDirective, is_marked, objects_in
from tool_chaining_conformance.values import quote, same


@check("tool-chaining-server-names-listed-tool", on=ResultWithDirective)
def names_listed_tool(result: ResultWithDirective) -> Finding | None:
    """The server lists the tool for this caller right afterwards, visible to the model."""
    listed = _is_listed(result)
    if result.target is None or not hidden_from_model(result.target):
        return listed
    visibility = within(result.target, "_meta", "ui").get(VISIBILITY)
    return Finding(
        False,
        expected="a tool whose _meta.ui.visibility, if present, includes model",
        seen=f"{result.directive.tool} with visibility {quote(visibility)}",
    )


@check("tool-chaining-server-intermediary-renames", on=DirectiveOfIntermediary)
def intermediary_renames(passed_on: DirectiveOfIntermediary) -> Finding | None:
    """The directive and the words of an intermediary name the tool as in its own list."""
    result, tool = passed_on.result, passed_on.result.directive.tool
    listed = _is_listed(result)
    if tool is None or not isinstance(listed, Finding) or not listed.holds:
        return listed
    step = result.structured.get("nextStep")
    other = [
        *(
            quote(item.get("text"))
            for item in result.content
            if _names_another(item, result.directive)
        ),
        *(
            [f"nextStep {quote(step)}"]
            if isinstance(step, dict) and step.get("tool") != tool
            else []
        ),
    ]
    return Finding(
        not other,
        expected=f"words that name {tool}, or no words",
        seen=", ".join(other) or "no other words",
    )


def _names_another(item: Json, seen: SeenDirective) -> bool:
    """Whether a marked item has the arguments of a directive, and not the name of its tool."""
    text = str(item.get("text"))
    named = re.search(rf"(?<![\w.-]){re.escape(str(seen.tool))}(?![\w-])", text)
    repeats = any(same(found, seen.arguments) for found, _ in objects_in(text))
    return is_marked(item) and repeats and named is None


def _is_listed(result: ResultWithDirective) -> Finding | None:
    if result.directive.tool is None:
        return None
    client = "a client that declared" if result.declared else "one that did not declare"
    named = ", ".join(result.listed[:NAMES]) + (", …" if len(result.listed) > NAMES else "")
    return Finding(
        result.target is not None,
        expected=f"a tool of tools/list, which was read right afterwards as {client}: {named}",
        seen=result.directive.tool,
    )


NAMES: Final = 30
"""The most names of a list that a message shows."""


VISIBILITY: Final = "visibility"


def hidden_from_model(tool: Json) -> bool:
    """Return whether a tool of `tools/list` has a visibility that lacks `"model"`.

    The text `"model"` counts as a list of one. Any other value that is not a list lacks it.
    """
    ui = within(tool, "_meta", "ui")
    if VISIBILITY not in ui:
        return False
    match ui[VISIBILITY]:
        case list() as audiences:
            return not any(audience == "model" for audience in audiences)
        case audience:
            return bool(audience != "model")


@check("tool-chaining-server-arguments-valid", on=ResultWithDirective)
def arguments_valid(result: ResultWithDirective) -> Finding | Untestable | None:
    """The arguments meet the tool's input schema."""
    schema, arguments = _schema(result), result.directive.arguments
    if schema is None or arguments is None:
        return None
    try:
        fault = first_fault(schema, arguments)
    except CannotTell as unknown:
        return Untestable(
            f"the suite's validator (jsonschema-rs) cannot tell whether the arguments for "
            f"{result.directive.tool} are valid: {unknown}"
        )
    return Finding(
        fault is None,
        expected="arguments that are complete and valid against the input schema of "
        f"{result.directive.tool}",
        seen=fault or "valid arguments",
    )


@check("tool-chaining-server-arguments-declared", on=ResultWithDirective)
def arguments_declared(result: ResultWithDirective) -> Finding | NotApplicable | None:
    """The tool's input schema declares every argument, so none is misspelt."""
    schema, arguments = _schema(result), result.directive.arguments
    if schema is None or arguments is None:
        return None
    tool = result.directive.tool
    if _declares_elsewhere(schema):
        return NotApplicable(
            f"the input schema of {tool} can declare arguments elsewhere than in properties"
        )
    properties = schema.get("properties")
    declared = properties.keys() if isinstance(properties, dict) else set()
    undeclared = sorted(arguments.keys() - declared)
    return Finding(
        not undeclared,
        expected=f"only arguments that the input schema of {tool} declares",
        seen=f"also {', '.join(undeclared)}" if undeclared else "only declared arguments",
    )


@check("tool-chaining-server-followed-result-meets-schema", on=PassedOn)
def followed_result_meets_schema(result: PassedOn) -> Finding | Untestable | NotApplicable:
    """An intermediary's result of a chain meets the output schema that it lists for the tool."""
    if result.output_schema is None:
        return NotApplicable("the tool has no output schema")
    try:
        fault = first_fault(result.output_schema, result.structured)
    except CannotTell as unknown:
        return Untestable(f"the suite's validator (jsonschema-rs) cannot tell: {unknown}")
    return Finding(
        result.is_error or fault is None,
        expected="structuredContent that is valid against the output schema, or isError true",
        seen=fault or "valid structuredContent",
    )


def _schema(result: ResultWithDirective) -> Json | None:
    schema = result.target.get("inputSchema") if result.target is not None else None
    return schema if isinstance(schema, dict) else None


ELSEWHERE: Final[Sequence[str]] = (
    *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    "patternProperties",
)
"""Keywords beside `properties` by which a schema can declare arguments."""


def _declares_elsewhere(schema: Json) -> bool:
    return any(keyword in schema for keyword in ELSEWHERE) or (
        schema.get("additionalProperties", False) is not False
    )


@check("tool-chaining-server-no-secret-in-arguments", on=DirectiveBesideSecrets)
def no_secret_in_arguments(seen: DirectiveBesideSecrets) -> Finding:
    """A directive contains no secret, since others can read it."""
    held = [
        name for name, secret in seen.secrets.items() if holds_secret(seen.directive.value, secret)
    ]
    return Finding(
        not held,
        expected="a directive without the values that the scenario marks as secret",
        seen=f"the value of {', '.join(held)}" if held else "no such value",
    )


def holds_secret(value: Any, secret: str) -> bool:
    """Return whether a JSON value holds a secret: in a text or a name, as it is or encoded.

    A very short secret must be a whole value: a part such as "1" would be found anywhere.
    """
    match value:
        case dict():
            return any(
                holds_secret(name, secret) or holds_secret(item, secret)
                for name, item in value.items()
            )
        case list():
            return any(holds_secret(item, secret) for item in value)
        case str():
            return value == secret or (len(secret) >= SHORTEST and _in_text(secret, value))
        case bool() | None:
            return False
        case _:
            return str(value) == secret


def _unescaped(text: str) -> str:
    """Return a text without the escapes of JSON."""
    return _ESCAPES.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)


def _from_hex(text: str) -> str:
    return "\n".join(
        bytes.fromhex(found).decode("utf-8", "replace") for found in _HEX.findall(text)
    )


def _from_base64(text: str) -> str:
    """Return the decoded Base64 in a text, from each possible start."""
    decoded: list[str] = []
    for run in _BASE64.findall(text):
        for start in range(4):
            part = run[start:].translate(_STANDARD)
            # One character alone encodes no byte.
            part = part[: len(part) - (len(part) % 4 == 1)]
            raw = binascii.a2b_base64(part + "=" * (-len(part) % 4))
            decoded.append(raw.decode("utf-8", "replace"))
    return "\n".join(decoded)


_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[\"\\/bfnrt]")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){4,}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_STANDARD: Final = str.maketrans("-_", "+/")
_DECODINGS: Final[Sequence[Callable[[str], str]]] = (
    *(unquote, unquote_plus, html.unescape, _unescaped, _from_hex, _from_base64),
)


def _in_text(secret: str, text: str) -> bool:
    """Return whether a text contains a secret, as it is or encoded once."""
    return secret in text or any(secret in decode(text) for decode in _DECODINGS)
