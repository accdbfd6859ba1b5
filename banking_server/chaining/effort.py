"""How much work is it to check a value against a JSON Schema? Bounded before anything is checked.

Anybody can have written the schema, and the arguments that a directive brings. A few hundred bytes
of references to references can keep a validator busy for hours, or end the process with a stack
overflow, and no deadline stops a validator. So `Schema.allows_for` walks along first, through each
pair of a subschema and a value that a validator would look at, and gives up beyond a limit. The
walk takes some 50 ms at most; for the arguments of a common tool, a few microseconds.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from banking_server.chaining.values import Nowhere, follow, pointer_parts

LIMIT: Final = 50_000
"""Steps of one check. One step is at most some microseconds of a validator's time."""

MAX_DEPTH: Final = 128
"""How deep a value may be nested, and how deep its check."""

MAX_SIZE: Final = 100_000
"""Of how many values, members of members included, a value may consist."""

MAX_PATTERNS: Final = 50
"""Regular expressions in one schema; each takes up to ten milliseconds to compile."""

_SAME_VALUE: Final = frozenset({"not", "if", "then", "else"})
_SAME_VALUE_EACH: Final = frozenset({"allOf", "anyOf", "oneOf"})
_SAME_VALUE_NAMED: Final = frozenset({"dependentSchemas", "dependencies"})
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_EACH_MEMBER: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_EACH_ITEM: Final = frozenset({"items", "additionalItems", "unevaluatedItems", "contains"})
"""What the keywords of all dialects apply their subschemas to."""


class TooMuch(Exception):
    """The check would take too long, or goes too deep."""


class Schema:
    """A schema that one can walk along. It must not change any more."""

    def __init__(self, document: Any) -> None:
        """Find what can be referred to. Raises `TooMuch` for too many regular expressions."""
        self._document = document
        self._base: dict[int, str] = {}
        self._resources: defaultdict[str, list[Any]] = defaultdict(list, {"": [document]})
        self._anchors: defaultdict[str, list[Any]] = defaultdict(list)
        self._patterns: set[str] = set()
        self._size = 0
        self._refers = False
        self._index(document, "")
        if len(self._patterns) > MAX_PATTERNS:
            raise TooMuch

    def allows_for(self, value: Any, *, linear: bool) -> None:
        """Raise `TooMuch` if `value` is too large, or checking it takes more than `LIMIT` steps.

        `linear` says that no regular expression of the schema backtracks.
        """
        steps = size(value) * self._size
        if steps > LIMIT or self._refers or self._patterns:
            _Walk(self, linear).visit(self._document, value, 0)

    def rule_at(self, path: Sequence[str | int]) -> Any | Nowhere:
        """Return what stands at the end of a path through the schema and its references."""
        node = self._document
        for part in path:
            rule = follow([str(part)], node)
            if part in _REFERENCES and isinstance(rule, str):
                rule = next(iter(self.targets(node, rule)), Nowhere(rule))
            node = rule
        return node

    def targets(self, node: dict[str, Any], reference: str) -> list[Any]:
        """Return what a reference in `node` can lead to; nothing outside the schema is looked at.

        Where two subschemas bear one name, all are returned: which of them is meant, only the
        validator knows.
        """
        try:
            uri, fragment = urldefrag(urljoin(self._base.get(id(node), ""), reference))
        except ValueError:
            return []
        parts = pointer_parts(fragment)
        if parts is None:
            return self._anchors[fragment]
        found = [follow(parts, resource) for resource in self._resources[uri]]
        return [target for target in found if not isinstance(target, Nowhere)]

    def _index(self, node: Any, base: str) -> None:
        self._size += 1
        if isinstance(node, list):
            for item in node:
                self._index(item, base)
        if not isinstance(node, dict):
            return
        for name in (node.get("$id"), node.get("id")):
            if isinstance(name, str):
                with suppress(ValueError):  # Not a URI, so that nothing can refer to it.
                    base, anchor = urldefrag(urljoin(base, name))
                    self._resources[base].append(node)
                    self._anchors[anchor].append(node)
        for name in (node.get("$anchor"), node.get("$dynamicAnchor")):
            if isinstance(name, str):
                self._anchors[name].append(node)
        self._refers = self._refers or not _REFERENCES.isdisjoint(node)
        if base:
            self._base[id(node)] = base
        if isinstance(node.get("pattern"), str):
            self._patterns.add(node["pattern"])
        if isinstance(node.get("patternProperties"), dict):
            self._patterns.update(node["patternProperties"])
        for item in node.values():
            self._index(item, base)


class _Walk:
    def __init__(self, schema: Schema, linear: bool) -> None:
        self._schema = schema
        self._linear = linear
        self._left = LIMIT

    def visit(self, node: Any, value: Any, depth: int) -> None:
        self._spend(1)
        if not isinstance(node, dict):
            return
        depth += 1
        if depth > MAX_DEPTH:
            raise TooMuch
        for keyword, rule in node.items():
            # A long enumeration or list of names is gone through, more or less.
            self._spend(1 + len(rule) // 10 if isinstance(rule, list | dict) else 1)
            if keyword in _SAME_VALUE:
                self.visit(rule, value, depth)
            elif keyword in _SAME_VALUE_EACH and isinstance(rule, list):
                for each in rule:
                    self.visit(each, value, depth)
            elif keyword in _SAME_VALUE_NAMED and isinstance(rule, dict):
                for each in rule.values():
                    self.visit(each, value, depth)
            elif keyword in _REFERENCES and isinstance(rule, str):
                for each in self._schema.targets(node, rule):
                    self.visit(each, value, depth)
            elif isinstance(value, dict):
                self._members(keyword, rule, value, depth)
            elif isinstance(value, list):
                self._items(keyword, rule, value, depth)
            elif keyword == "pattern" and isinstance(value, str):
                self._match(value)

    def _members(self, keyword: str, rule: Any, value: dict[str, Any], depth: int) -> None:
        if keyword == "properties" and isinstance(rule, dict):
            for name, each in rule.items():
                if name in value:
                    self.visit(each, value[name], depth)
        elif keyword == "patternProperties" and isinstance(rule, dict):
            for each in rule.values():
                for name, member in value.items():
                    self._match(name)
                    self.visit(each, member, depth)
        elif keyword in _EACH_MEMBER:
            for member in value.values():
                self.visit(rule, member, depth)
        elif keyword == "propertyNames":
            for name in value:
                self.visit(rule, name, depth)

    def _items(self, keyword: str, rule: Any, value: list[Any], depth: int) -> None:
        if keyword in ("prefixItems", "items") and isinstance(rule, list):
            for each, item in zip(rule, value, strict=False):
                self.visit(each, item, depth)
        elif keyword in _EACH_ITEM:
            for item in value:
                self.visit(rule, item, depth)
        elif keyword == "uniqueItems":
            self._spend(len(value))

    def _match(self, text: str) -> None:
        """A linear expression takes as long as the text; one that backtracks, its square."""
        self._spend(20 + (len(text) // 100 if self._linear else len(text) ** 2 // 10_000))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuch


def size(value: Any) -> int:
    """Return of how many values a value consists.

    Raises `TooMuch` for more than `MAX_SIZE`, and if the value is nested too deeply.
    """
    size, level = 1, [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        size += sum(map(len, level))
        if size > MAX_SIZE:
            break
        level = [
            member
            for outer in level
            for member in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(member, dict | list)
        ]
        if not level:
            return size
    raise TooMuch
