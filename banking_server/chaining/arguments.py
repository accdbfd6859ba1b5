"""Are arguments valid against a tool's input schema? (TC-C-14, TC-S-14)

Anybody can have written the schema and the arguments, and nothing stops a validator that is at
work. So `_Work` first goes through the schema, along its references, with each value that the
validator would look at. What is too much was not checked, and counts as not valid. Regular
expressions run in time linear to the text. Those that look around or refer back cannot: they
backtrack, up to a limit, and only where giving up cannot make the arguments valid.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs

from banking_server.chaining.values import Nowhere, follow, pointer_parts

MAX_SCHEMA: Final = 200_000
"""Characters of JSON that a schema may have."""

MAX_WORK: Final = 60_000
"""Steps of one check; a step is about a microsecond of the validator's time."""

MAX_DEPTH: Final = 128
"""How deep a check may go, references included."""

_COMPILED: Final = 8_000_000
"""Bytes that all regular expressions of a schema may take when compiled."""

_BACKTRACKS: Final = 10_000
_DIALECT: Final = re.compile(r"https?://json-schema\.org/draft[/-](2020-12|2019-09|07)/schema#?")
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SAME_VALUE: Final = frozenset(
    {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
)
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_EACH: Final = _UNEVALUATED | frozenset(
    {"items", "prefixItems", "additionalItems", "contains", "additionalProperties"}
)
_NEGATING: Final = _UNEVALUATED | {"not", "if", "oneOf", "contains", "patternProperties"}
"""Where arguments can be valid because something does not match."""

_BACKTRACKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9k]")
_COUNTED: Final = re.compile(r"(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}")

_TOO_MUCH: Final = "the arguments or the tool's input schema are too much to be checked"


class _NotChecked(Exception):
    """The arguments were not checked. The message says why, in words for people."""


def argument_problem(input_schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Say why `arguments` are not valid against `input_schema`, or return None if they are valid.

    The schema is read as JSON Schema 2020-12 unless it names another dialect, and nothing is
    fetched. If it cannot be read or is too much to be checked, no arguments are valid. The sentence
    names places and rules but repeats no value, so that it can be logged.
    """
    try:
        # The text is what is looked up, so that a schema that has changed is compiled anew.
        document, work, validator = _compiled(json.dumps(input_schema))
        _Work(document, work).visit(document, arguments)
        validator.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        return _in_words(error)
    except _NotChecked as why:
        return f"arguments: {why}"
    except Exception:
        # Whatever the validator cannot do (a text that is not Unicode, say) is not checked.
        return f"arguments: {_TOO_MUCH}"
    return None


def _in_words(error: jsonschema_rs.ValidationError) -> str:
    # A name of the server's is not to be taken for words of ours.
    names = [str(name) for name in error.instance_path]
    shown = [n if re.fullmatch(r"[\w$-]{1,64}", n) else json.dumps(n[:64]) for n in names]
    place, kind = ".".join(["arguments", *shown]), error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{place}: {kind.property!r} is a required property"
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        return f"{place}: {json.dumps(kind.value)[:200]} is not allowed"
    # Where a rule consists of others, their errors are the value, and repeat what was sent.
    rule = json.dumps(kind.value, ensure_ascii=False, default=lambda _: "...")[:200]
    return f"{place}: must satisfy {kind.name} {rule}"


@lru_cache(maxsize=64)
def _compiled(text: str) -> tuple[Any, int, Any]:
    """Return a schema, the work that its check may be, and its validator, or raise."""
    if len(text) > MAX_SCHEMA:
        raise _NotChecked(_TOO_MUCH)
    document = json.loads(text)
    patterns: set[str] = set()
    keywords: Counter[str] = Counter()
    for node in _nodes(document):
        found = [node.get("pattern"), *(node.get("patternProperties") or ())]
        patterns.update(pattern for pattern in found if isinstance(pattern, str))
        keywords.update(node.keys())
    size = _COMPILED // max(1, len(patterns))
    options: Any = jsonschema_rs.RegexOptions(size)
    if any(map(_BACKTRACKING.search, patterns)):
        options = jsonschema_rs.FancyRegexOptions(_BACKTRACKS, size)
        if _NEGATING & keywords.keys():
            raise _NotChecked("the tool's input schema has expressions that are too difficult")
    try:
        validator = jsonschema_rs.validator_for(
            text, validate_formats=False, offline=True, pattern_options=options
        )
    except Exception as error:
        raise _NotChecked(
            "the tool's input schema is not valid, or its expressions are too large"
        ) from error
    # To find the rest, all beside it is checked once more, and again.
    return document, MAX_WORK // 4 ** sum(keywords[each] for each in _UNEVALUATED), validator


def _nodes(node: Any, *, root: bool = True) -> Iterator[dict[str, Any]]:
    """Yield what can be schemas in a schema. Raises `_NotChecked` for what is not read here."""
    if isinstance(node, dict):
        if not root and isinstance(node.get("$id"), str):
            raise _NotChecked("the tool's input schema has further schemas in it")
        if isinstance(at := node.get("$schema"), str) and not _DIALECT.fullmatch(at):
            raise _NotChecked("the tool's input schema names a dialect that is not known here")
        for to in (node[keyword] for keyword in _REFERENCES & node.keys()):
            if isinstance(to, str) and not re.match("#(/|$)", to):
                raise _NotChecked("the tool's input schema has references that do not begin with #")
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(each, root=False)


@dataclass
class _Work:
    """Goes through a schema and a value as a validator does, and counts the steps."""

    document: Any
    left: int

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _NotChecked(_TOO_MUCH)

    def visit(self, node: Any, value: Any, depth: int = 0) -> None:
        self.spend(1)
        if depth > MAX_DEPTH or isinstance(node, Nowhere):
            raise _NotChecked(_TOO_MUCH)
        for keyword, rule in node.items() if isinstance(node, dict) else ():
            self.spend(1 + len(rule) // 10 if isinstance(rule, list | dict) else 1)
            for each, over in self._applied(keyword, rule, value):
                self.visit(each, over, depth + 1)
            if keyword == "pattern" and isinstance(value, str):
                self._match(rule, value)
            elif keyword == "uniqueItems" and isinstance(value, list):
                self._tell_apart(value)

    def _applied(self, keyword: str, rule: Any, value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the subschemas of a keyword, each with a value that it is applied to."""
        if keyword in _REFERENCES:
            yield follow(pointer_parts(unquote(rule[1:])) or [], self.document), value
        elif keyword in _SAME_VALUE:
            named = rule.values() if keyword.startswith("depend") else [rule]
            yield from ((each, value) for each in (rule if isinstance(rule, list) else named))
        elif keyword == "properties" and isinstance(value, dict):
            yield from ((rule[name], value[name]) for name in rule if name in value)
        elif keyword == "patternProperties" and isinstance(value, dict):
            yield from (({"pattern": pattern}, name) for pattern in rule for name in value)
            yield from ((each, member) for each in rule.values() for member in value.values())
        elif keyword == "propertyNames" and isinstance(value, dict):
            yield from ((rule, name) for name in value)
        elif keyword in _EACH and isinstance(value, dict | list):
            members = value.values() if isinstance(value, dict) else value
            rules = rule if isinstance(rule, list) else [rule] * len(value)
            yield from zip(rules, members, strict=False)

    def _match(self, pattern: str, text: str) -> None:
        """At worst, each character goes through all states, with counts written out."""
        length, states, times = len(text.encode()), len(pattern), 1
        for group, least, most in _COUNTED.findall(pattern):
            count = max(int(least), int(most or 0), 1)
            states, times = (states, times * count) if group else (states + count, times)
        self.spend(5 + length * states * times // 200)
        if _BACKTRACKING.search(pattern):
            self.spend(500 + length**2 * states * times // 100)

    def _tell_apart(self, items: list[Any]) -> None:
        """Items are told apart by hashes, and those that can have one hash one by one."""
        alike: defaultdict[Any, list[int]] = defaultdict(list)
        for item in items:
            # All objects and lists could have one hash; so have integers that are one double.
            key = None if isinstance(item, dict | list) else item
            alike[float(item) if type(item) is int else key].append(len(str(item)))
        self.spend(sum(len(group) * sum(group) // 500 + 1 for group in alike.values()))
