"""Are arguments valid against a tool's input schema? (TC-C-14, TC-S-14)

A hostile schema can take hours to check. So use this for a server's own schemas, and
for servers that the host trusts. A host that connects to others leaves validation to the server:
see `Follower.validate`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from tool_chaining.content import member

if TYPE_CHECKING:
    import jsonschema_rs


class ArgumentCheck:
    """The input schemas of a server's tools, each compiled once, and again when it has changed."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[dict[str, Any], Any]] = {}
        """By the tool's name: the schema as it was, and its validator."""

    def problem(
        self, tool: str, input_schema: dict[str, Any], arguments: dict[str, Any]
    ) -> str | None:
        """Say why `arguments` are not valid against `input_schema`, or return None if they are.

        The schema is read as JSON Schema 2020-12 unless it names another dialect. Nothing is
        fetched. If the schema cannot be read, no arguments are valid. The sentence names places and
        rules. It repeats no value, so that it can be logged.
        """
        import jsonschema_rs  # Imported for the first directive, so that programs start faster.

        try:
            validator = self._validator(tool, input_schema)
        except (ValueError, RecursionError):
            return "arguments: the tool's input schema is not valid"
        try:
            validator.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            return _problem(error)
        except (ValueError, RecursionError):
            return "arguments: they cannot be read"
        return None

    def _validator(self, tool: str, input_schema: dict[str, Any]) -> Any:
        import jsonschema_rs

        schema, validator = self._compiled.get(tool, (None, None))
        if schema != input_schema:
            validator = jsonschema_rs.validator_for(
                input_schema, validate_formats=False, offline=True
            )
            # A copy, because the server may change the object itself.
            self._compiled[tool] = deepcopy(input_schema), validator
        return validator


_OTHERS: Final = {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"}


def lists_all(schema: Mapping[str, Any]) -> bool:
    """Return whether an object has no other members than its `properties`.

    Few schemas say so, so they must say that there are others.
    """
    return not _OTHERS & schema.keys() and schema.get("additionalProperties", False) is False


def unknown_member(name: str, schema: Any, place: str, tool: str) -> str | None:
    """Say that an object has no such member, if its schema lists all members."""
    declared = member(schema, "properties")
    if not isinstance(declared, dict) or name in declared or not lists_all(schema):
        return None
    near = get_close_matches(name, declared, n=1)
    return f"{place}: {tool} does not know it.{f' Did you mean {near[0]}?' if near else ''}"


def unknown_members(value: Any, schema: Any, place: str, tool: str) -> Iterator[str]:
    """Yield a sentence for each member of a value that a tool's schema does not list."""
    if not isinstance(schema, dict):
        return
    for part in value if isinstance(value, list) else ():
        yield from unknown_members(part, member(schema, "items"), place, tool)
    for name, part in value.items() if isinstance(value, dict) else ():
        if problem := unknown_member(name, schema, f"{place}.{name}", tool):
            yield problem
        else:
            of_it = member(member(schema, "properties"), name)
            yield from unknown_members(part, of_it, f"{place}.{name}", tool)


def _problem(error: "jsonschema_rs.ValidationError") -> str:
    import jsonschema_rs

    # The server chose the names. An unusual one is quoted, so that it does not look like our text.
    names = [str(name) for name in error.instance_path]
    shown = [n if re.fullmatch(r"[\w$-]{1,64}", n) else json.dumps(n[:64]) for n in names]
    place, kind = ".".join(["arguments", *shown]), error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{place}: {kind.property!r} is a required property"
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        return f"{place}: {json.dumps(kind.value)[:200]} is not allowed"
    # A rule made of other rules (`allOf`) has their errors as its value. They repeat the arguments.
    rule = json.dumps(kind.value, ensure_ascii=False, default=lambda _: "...")[:200]
    return f"{place}: must satisfy {kind.name} {rule}"
