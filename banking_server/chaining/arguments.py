"""The arguments of a call: are they valid against the tool's input schema? (TC-C-14 to TC-C-16)

The validator is `jsonschema-rs`: it reads regular expressions as ECMA-262 does, and compiles each
schema once. What it is given is bounded first (`effort`), since nothing can stop it on its way.

Regular expressions run in time linear to the text wherever they can. Those that look around or
refer back cannot; for them, backtracking ends after `MAX_BACKTRACKS`, and the text does not match.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from banking_server.chaining.effort import Schema, TooMuch
from banking_server.chaining.values import Nowhere, follow

MAX_SCHEMA_LENGTH: Final = 200_000
"""Characters of JSON that an input schema may have; compiling that much takes some 20 ms."""

MAX_BACKTRACKS: Final = 10_000
_REGEX_SIZE: Final = 2_000_000
"""Bytes that one compiled regular expression may take; `^\\p{L}{1,40}$` takes about as much."""

_PATTERNS: Final = (
    jsonschema_rs.RegexOptions(size_limit=_REGEX_SIZE),
    jsonschema_rs.FancyRegexOptions(size_limit=_REGEX_SIZE, backtrack_limit=MAX_BACKTRACKS),
)

_Kind = jsonschema_rs.ValidationErrorKind

_INVALID: Final = "the tool's input schema is not valid JSON Schema"
_UNCHECKED: Final = "the arguments could not be checked against the tool's input schema"
_TOO_MUCH: Final = (
    "the arguments or the schema are nested too deeply, or refer to too much, to be checked"
)


def argument_problem(input_schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Say why `arguments` are not valid against `input_schema`, or return None if they are valid.

    The schema is read as JSON Schema 2020-12 unless it names another dialect. No `$ref` is ever
    fetched: if one points outside the schema, the arguments cannot be validated and so are not
    valid. Neither are they if the dialect is unknown, or the check would take too long. The
    sentence names places and rules but repeats no value, so that it can be logged.
    """
    try:
        # The text is what is looked up, so that a schema that has changed is compiled anew.
        compiled = _compiled(json.dumps(input_schema))
        return compiled if isinstance(compiled, str) else compiled.problem(arguments)
    except (RecursionError, TooMuch):
        return _TOO_MUCH
    except Exception:
        # Anybody can have written the schema. If the validator itself fails (text that is not
        # Unicode), the arguments were not checked, so they count as not valid.
        return _UNCHECKED


_DECLARING: Final = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
    | {"patternProperties", "additionalProperties"}
)
"""What can declare an argument beside `properties`."""


def undeclared_arguments(input_schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    """Return the arguments that the tool does not know: misspelt, most likely (TC-S-15).

    A schema can also declare arguments otherwise than by their names under `properties`. Such a
    schema is taken to declare all of them.
    """
    if any(input_schema.get(keyword, False) is not False for keyword in _DECLARING):
        return []
    declared = input_schema.get("properties")
    return [name for name in arguments if not isinstance(declared, dict) or name not in declared]


@dataclass(frozen=True)
class _Compiled:
    schema: Schema
    validator: jsonschema_rs.Validator
    linear: bool
    """No regular expression of the schema backtracks."""

    def problem(self, arguments: Any) -> str | None:
        self.schema.allows_for(arguments, linear=self.linear)
        try:
            self.validator.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            return self._describe(error, arguments)
        return None

    def _describe(self, error: jsonschema_rs.ValidationError, arguments: Any) -> str:
        place = ".".join(["arguments", *map(_name, error.instance_path)])
        path = error.evaluation_path
        match error.kind:
            # These name properties, never values.
            case _Kind.Required(property=name):
                return f"{place}: {name!r} is a required property"
            case _Kind.AdditionalProperties(unexpected=names):
                return f"{place}: {_listed(names)} not allowed"
            case _Kind.FalseSchema() if path[-1:] == ["additionalProperties"]:
                found = follow([str(part) for part in error.instance_path], arguments)
                return f"{place}: {_listed(found)} not allowed"
            case _Kind.FalseSchema() if not path:
                return f"{place}: nothing is allowed"
        rule = self.schema.rule_at(path)
        shown = "" if isinstance(rule, Nowhere) else json.dumps(rule)[:200]
        return f"{place}: must satisfy {path[-1]} {shown}".rstrip()


def _name(part: str | int) -> str:
    """Return a name of the server's so that nobody takes it for words of ours."""
    name = str(part)
    return name if re.fullmatch(r"[\w$-]{1,64}", name) else json.dumps(name[:64])


def _listed(names: Any) -> str:
    return f"{', '.join(map(repr, names))[:200]}: such properties are"


@lru_cache(maxsize=64)
def _compiled(schema: str) -> _Compiled | str:
    """Return the schema compiled, or the problem with it."""
    if len(schema) > MAX_SCHEMA_LENGTH:
        return f"the tool's input schema is longer than {MAX_SCHEMA_LENGTH:,} characters"
    try:
        known = Schema(json.loads(schema))
    except (RecursionError, TooMuch):
        return _TOO_MUCH
    problem = _INVALID
    for patterns in _PATTERNS:
        try:
            validator = jsonschema_rs.validator_for(
                schema, validate_formats=False, offline=True, pattern_options=patterns
            )
        except jsonschema_rs.ValidationError as error:
            problem = _schema_problem(error)
        except ValueError:
            return _TOO_MUCH  # Its own limit for nesting.
        else:
            return _Compiled(known, validator, linear=patterns is _PATTERNS[0])
    return problem


def _schema_problem(error: jsonschema_rs.ValidationError) -> str:
    if not isinstance(error.kind, _Kind.Referencing):
        return _INVALID
    named = re.search("'(.*?)'", error.message)
    if "meta-schema" in error.message:
        return "the tool's input schema names a dialect that is not known here"
    what = json.dumps(named[1][:200]) if named else "something"
    return f"the tool's input schema refers to {what}, which is not in it"
