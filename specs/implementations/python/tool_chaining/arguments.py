"""Are arguments valid against a tool's input schema? (TC-C-14, TC-S-14)

The schema and the arguments may come from anybody, and a running validator cannot be stopped. So
`_Work` first estimates the validator's work: it goes through the schema and its references with the
values. Arguments that would take too much work are not checked, and count as not valid. Regular
expressions run in time linear to the text. Expressions with lookaround or backreferences backtrack,
up to a limit. They are used only where giving up cannot make the arguments valid.
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

from tool_chaining.values import Nowhere, follow, pointer_parts

MAX_SCHEMA: Final = 200_000
"""Characters of JSON that a schema may have."""

MAX_WORK: Final = 60_000
"""Steps of one check at most; a step is about a microsecond of the validator's time."""

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
    """The arguments were not checked; the message tells people why."""


def argument_problem(input_schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Say why `arguments` are not valid against `input_schema`, or return None if they are valid.

    The schema is read as JSON Schema 2020-12 unless it names another dialect. Nothing is fetched.
    If the schema cannot be read, or the check would take too much work, no arguments are valid. The
    sentence names places and rules. It repeats no value, so that it can be logged.
    """
    try:
        # The text is the key of the cache, so that a changed schema is compiled again.
        document, work, validator = _compiled(json.dumps(input_schema))
        _Work(document, work).visit(document, arguments)
        validator.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        return _problem(error)
    except _NotChecked as why:
        return f"arguments: {why}"
    except Exception:
        # The validator cannot check everything: a text that is not Unicode, for example.
        return f"arguments: {_TOO_MUCH}"
    return None


def _problem(error: jsonschema_rs.ValidationError) -> str:
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


@lru_cache(maxsize=64)
def _compiled(text: str) -> tuple[Any, int, Any]:
    """Return the schema, the steps that its check may take, and its validator.

    Raises `_NotChecked` if the schema is too large, not valid or not supported.
    """
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
    # `unevaluated…` makes the validator check all rules beside it again.
    return document, MAX_WORK // 4 ** sum(keywords[each] for each in _UNEVALUATED), validator


def _nodes(node: Any, *, root: bool = True) -> Iterator[dict[str, Any]]:
    """Yield every object that can be a schema. Raises `_NotChecked` for unsupported keywords."""
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
    """Goes through a schema and a value as the validator does, and counts the steps.

    `left` is the number of steps that are still allowed.
    """

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
                self._compare_items(value)

    def _applied(self, keyword: str, rule: Any, value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each subschema of a keyword with the value that it is applied to."""
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
        """Spend the steps of the worst case: each character goes through all states."""
        length, states, times = len(text.encode()), len(pattern), 1
        for group, least, most in _COUNTED.findall(pattern):
            count = max(int(least), int(most or 0), 1)
            states, times = (states, times * count) if group else (states + count, times)
        self.spend(5 + length * states * times // 200)
        if _BACKTRACKING.search(pattern):
            self.spend(500 + length**2 * states * times // 100)

    def _compare_items(self, items: list[Any]) -> None:
        """Spend the steps of comparing items: pairwise among those that can have one hash."""
        by_hash: defaultdict[Any, list[int]] = defaultdict(list)
        for item in items:
            # Any two objects or lists can have one hash. Integers that are one double have one.
            key = None if isinstance(item, dict | list) else item
            by_hash[float(item) if type(item) is int else key].append(len(str(item)))
        self.spend(sum(len(group) * sum(group) // 500 + 1 for group in by_hash.values()))
