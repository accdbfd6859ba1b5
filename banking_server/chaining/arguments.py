"""The arguments of a call: are they valid against the tool's input schema? (TC-C-14 to TC-C-16)

The validator is `jsonschema-rs`, which compiles each schema once. What it is given is bounded first
(`effort`), since nothing can stop it on its way; and it is given its regular expressions in its own
syntax (`patterns`), since what it makes of ECMA-262 itself is not quite the same.

Regular expressions run in time linear to the text wherever they can. Those that look around or
refer back cannot; for them, backtracking ends after `MAX_BACKTRACKS`, and the text was not checked.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from banking_server.chaining.effort import MAX_BACKTRACKS, Schema, TooMuch
from banking_server.chaining.patterns import NotReadable, read
from banking_server.chaining.values import Nowhere, follow

MAX_SCHEMA_LENGTH: Final = 200_000
"""Characters of JSON that an input schema may have; compiling that much takes some 20 ms."""

_REGEX_SIZE: Final = 8_000_000
"""Bytes that one compiled regular expression may take; `^\\p{L}{1,40}$` takes some two million."""

_LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=_REGEX_SIZE)
_BACKTRACKING: Final = jsonschema_rs.FancyRegexOptions(
    size_limit=_REGEX_SIZE, backtrack_limit=MAX_BACKTRACKS
)

_Kind = jsonschema_rs.ValidationErrorKind

_VALUES: Final = frozenset({"const", "enum", "default", "examples"})
"""What is under these is no schema, whatever it looks like."""

_NAMED: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies"}
    | {"$defs", "definitions"}
)
"""What has subschemas under names."""

_DIALECTS: Final = frozenset(
    {f"https://json-schema.org/draft/{version}/schema" for version in ("2020-12", "2019-09")}
    | {f"http://json-schema.org/draft-0{version}/schema" for version in (7, 6, 4)}
)

_INVALID: Final = "the tool's input schema is not valid JSON Schema"
_DIALECT: Final = "the tool's input schema names a dialect that is not known here"
_UNCHECKED: Final = "the arguments could not be checked against the tool's input schema"
_TOO_MUCH: Final = (
    "the arguments or the schema are nested too deeply, or refer to too much, to be checked"
)


def argument_problem(input_schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Say why `arguments` are not valid against `input_schema`, or return None if they are valid.

    The schema is read as JSON Schema 2020-12 unless it names another dialect. No `$ref` is ever
    fetched: if one points outside the schema, the arguments cannot be validated and so are not
    valid. Neither are they if the dialect is unknown, or the check would take too long. The
    sentence says what to write instead, for people and models. It names places and rules but
    repeats no value, so that it can be logged.
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


def structured_problem(output_schema: dict[str, Any], structured: Any) -> str | None:
    """Say why structured content is not valid against an output schema, as `argument_problem`."""
    problem = argument_problem(output_schema, structured)
    if problem is None or not problem.startswith("arguments"):
        return problem and "it could not be checked against the tool's output schema"
    return "it" + problem.removeprefix("arguments")


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
    if any(input_schema[keyword] is not False for keyword in _DECLARING & input_schema.keys()):
        return []
    declared = input_schema.get("properties")
    return [name for name in arguments if not isinstance(declared, dict) or name not in declared]


@dataclass(frozen=True)
class _Compiled:
    schema: Schema
    validator: jsonschema_rs.Validator
    sources: dict[str, str]
    """The regular expressions of the schema, by what the validator has in their place."""

    def problem(self, arguments: Any) -> str | None:
        for source, text in self.schema.backtracking(arguments):
            _try_alone(read(source).text, text)
        try:
            self.validator.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            return self._describe(error, arguments)
        return None

    def _describe(self, error: jsonschema_rs.ValidationError, arguments: Any) -> str:
        place = ".".join(["arguments", *map(_name, error.instance_path)])
        path = error.evaluation_path
        for at, part in enumerate(path):
            if part == "patternProperties" and path[at + 1 :]:
                path[at + 1] = self.sources.get(str(path[at + 1]), path[at + 1])
        match error.kind:
            # These name properties, never values.
            case _Kind.Required(property=name):
                return f"{place}: {name!r} is a required property"
            case _Kind.AdditionalProperties(unexpected=names):
                return f"{place}: {_listed(names)} not allowed{self._allowed(path)}"
            case _Kind.FalseSchema() if path[-1:] == ["additionalProperties"]:
                found = follow([str(part) for part in error.instance_path], arguments)
                return f"{place}: {_listed(found)} not allowed{self._allowed(path)}"
            case _Kind.FalseSchema() if not path:
                return f"{place}: nothing is allowed"
        rule = self.schema.rule_at(path)
        return f"{place}: must {_in_words(str(path[-1]), rule)}".rstrip()

    def _allowed(self, path: list[str | int]) -> str:
        """Name the properties that stand beside the rule against all others."""
        known = self.schema.rule_at([*path[:-1], "properties"])
        if not isinstance(known, dict) or not known:
            return ""
        return f"; there are {', '.join(map(_name, known))[:200]}"


_TYPES: Final = {
    "string": "a text in quotation marks",
    "number": "a number such as 25.5",
    "integer": "a whole number such as 25",
    "boolean": "true or false",
    "array": "a list in square brackets",
    "object": "a JSON object in braces",
    "null": "null",
}
_BARE: Final = frozenset({"number", "integer", "boolean"})
"""Types that models like to write as text."""

_RULES: Final = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
    "const": "be {}",
}
"""What a keyword asks for."""


def _in_words(keyword: str, rule: Any) -> str:
    """Say what a rule of the schema asks for, as it follows "must"."""
    types = _types(keyword, rule)
    if types:
        quotes = ", without quotation marks" if _BARE.issuperset(types) else ""
        return f"be {' or '.join(_TYPES[name] for name in types)}{quotes}"
    if keyword == "enum" and isinstance(rule, list):
        return f"be one of {', '.join(map(json.dumps, rule))[:200]}"
    shown = "" if isinstance(rule, Nowhere) else json.dumps(rule)[:200]
    known = _RULES.get(keyword)
    return known.format(shown) if known else f"satisfy {keyword} {shown}"


def _types(keyword: str, rule: Any) -> list[str]:
    """Return the types that a rule asks for; none if it asks for anything else."""
    if keyword in ("anyOf", "oneOf") and isinstance(rule, list):
        rule = [each.get("type") if isinstance(each, dict) else None for each in rule]
    elif keyword != "type":
        return []
    names = rule if isinstance(rule, list) else [rule]
    return names if all(isinstance(name, str) and name in _TYPES for name in names) else []


def _name(part: str | int) -> str:
    """Return a name of the server's so that nobody takes it for words of ours."""
    name = str(part)
    return name if re.fullmatch(r"[\w$-]{1,64}", name) else json.dumps(name[:64])


@lru_cache(maxsize=64)
def _alone(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        {"pattern": pattern}, validate_formats=False, pattern_options=_BACKTRACKING
    )


def _try_alone(pattern: str, text: str) -> None:
    """Raise `TooMuch` if matching is given up. Under `not`, it would pass for a text unlike it."""
    try:
        _alone(pattern).validate(text)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, _Kind.BacktrackLimitExceeded):
            raise TooMuch from None


def _listed(names: Any) -> str:
    return f"{', '.join(map(repr, names))[:200]}: such properties are"


@lru_cache(maxsize=64)
def _compiled(schema: str) -> _Compiled | str:
    """Return the schema compiled, or the problem with it."""
    if len(schema) > MAX_SCHEMA_LENGTH:
        return f"the tool's input schema is longer than {MAX_SCHEMA_LENGTH:,} characters"
    try:
        document = json.loads(schema)
        known = Schema(document)
        translation = _Translation()
        given = translation.schema(document)
    except (RecursionError, TooMuch):
        return _TOO_MUCH
    except _UnknownDialect:
        return _DIALECT
    try:
        validator = jsonschema_rs.validator_for(
            json.dumps(given),
            validate_formats=False,
            offline=True,
            pattern_options=_LINEAR if known.linear else _BACKTRACKING,
        )
    except jsonschema_rs.ValidationError as error:
        return _schema_problem(error)
    except ValueError:
        return _TOO_MUCH  # Its own limit for nesting.
    return _Compiled(known, validator, translation.sources)


class _UnknownDialect(Exception):
    pass


class _Translation:
    """A schema with its regular expressions as the validator reads them."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def schema(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.schema(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$schema" in node and not _is_known(node["$schema"]):
            raise _UnknownDialect
        return {keyword: self._rule(keyword, rule) for keyword, rule in node.items()}

    def _rule(self, keyword: str, rule: Any) -> Any:
        if keyword in _VALUES:
            return rule
        if keyword == "pattern" and isinstance(rule, str):
            return self._text(rule)
        if keyword in _NAMED and isinstance(rule, dict):
            return {
                self._text(name) if keyword == "patternProperties" else name: self.schema(each)
                for name, each in rule.items()
            }
        return self.schema(rule)

    def _text(self, source: str) -> str:
        """Return the expression in the engine's syntax, or what the engine refuses."""
        if source not in self._texts:
            try:
                text = read(source).text
            except NotReadable:
                text = "("
            while text in self.sources and text != "(":
                text = f"(?:{text})"  # Two expressions for one thing remain two.
            self.sources[text] = source
            self._texts[source] = text
        return self._texts[source]


def _is_known(dialect: Any) -> bool:
    if not isinstance(dialect, str):
        return True  # Not a dialect at all: the validator refuses it, where it means one.
    return dialect.removesuffix("#") in _DIALECTS


def _schema_problem(error: jsonschema_rs.ValidationError) -> str:
    if not isinstance(error.kind, _Kind.Referencing):
        return _INVALID
    named = re.search("'(.*?)'", error.message)
    if "meta-schema" in error.message:
        return _DIALECT
    what = json.dumps(named[1][:200]) if named else "something"
    return f"the tool's input schema refers to {what}, which is not in it"
