"""How much work is it to check a value against a JSON Schema? Bounded before anything is checked.

Anybody can have written the schema, and the arguments that a directive brings. A few hundred bytes
of references to references can keep a validator busy for hours, or end the process with a stack
overflow, and no deadline stops a validator. So `Schema.allows_for` walks along first, through each
pair of a subschema and a value that a validator would look at, and gives up beyond a limit. The
walk takes some 50 ms at most; for the arguments of a common tool, a few microseconds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from banking_server.chaining.patterns import NotReadable, Pattern, read
from banking_server.chaining.values import Nowhere, follow, pointer_parts

LIMIT: Final = 50_000
"""Steps of one check. One step is at most some microseconds of a validator's time."""

MAX_DEPTH: Final = 128
"""How deep a value may be nested, and how deep its check."""

MAX_SIZE: Final = 100_000
"""Of how many values, members of members included, a value may consist."""

MAX_COMPILING: Final = 250_000
"""How long it may take to compile all regular expressions of a schema; some 80 ms."""

MAX_BACKTRACKS: Final = 10_000
"""After so many, an expression that looks around or refers back is given up."""

_HOLDERS: Final = (dict, list)
"""What has values in it."""

_DOUBLES: Final = 2**53
"""From here on, different integers are one double."""

_WIDE: Final = 32
"""Members of an object, from which on somebody could make many objects with one hash."""

_SAME_VALUE: Final = frozenset({"not", "if", "then", "else"})
_SAME_VALUE_EACH: Final = frozenset({"allOf", "anyOf", "oneOf"})
_SAME_VALUE_NAMED: Final = frozenset({"dependentSchemas", "dependencies"})
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_EACH_MEMBER: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_EACH_ITEM: Final = frozenset({"items", "additionalItems", "unevaluatedItems", "contains"})
"""What the keywords of all dialects apply their subschemas to."""

_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_COSTLY: Final = (
    _REFERENCES | _UNEVALUATED | frozenset({"pattern", "patternProperties", "uniqueItems"})
)
"""What can be much work for small schemas and values."""


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
        self._patterns: dict[str, Pattern] = {}
        self._compiling = 0
        self._size = 0
        self._needs_walk = False
        self._index(document, "")

    def backtracking(self, value: Any) -> set[tuple[str, str]]:
        """Return which texts of `value` are matched with which expressions that backtrack.

        Raises `TooMuch` if `value` is too large, or checking it takes more than `LIMIT` steps.
        """
        if size(value) * self._size <= LIMIT and not self._needs_walk:
            return set()
        walk = _Walk(self)
        walk.visit(self._document, value, 0)
        return walk.backtracking

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

    @property
    def linear(self) -> bool:
        """Whether no regular expression looks around or refers back."""
        return all(pattern.linear for pattern in self._patterns.values())

    def pattern(self, source: Any) -> Pattern:
        """Return a regular expression of the schema. Raises `TooMuch` if it cannot be read."""
        if source not in self._patterns:
            raise TooMuch
        return self._patterns[source]

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
        self._needs_walk = self._needs_walk or not _COSTLY.isdisjoint(node)
        if base:
            self._base[id(node)] = base
        for pattern in patterns_of(node):
            # One that cannot be read makes the schema invalid, if it is a schema that it stands in.
            with suppress(NotReadable):
                if pattern not in self._patterns:
                    # To read it takes time as well, and so does the smallest of automata.
                    self._compiling += 300 + 30 * len(pattern)
                    self._patterns[pattern] = read(pattern)
                    self._compiling += self._patterns[pattern].compiling
            if self._compiling > MAX_COMPILING:
                raise TooMuch
        for item in node.values():
            self._index(item, base)


def patterns_of(node: dict[str, Any]) -> list[str]:
    """Return the regular expressions of a schema, without those of its subschemas."""
    pattern, named = node.get("pattern"), node.get("patternProperties")
    return [
        *([pattern] if isinstance(pattern, str) else ()),
        *(named if isinstance(named, dict) else ()),
    ]


class _Walk:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._left = LIMIT
        self._weight = 1
        self._again = 0
        self.backtracking: set[tuple[str, str]] = set()

    def visit(self, node: Any, value: Any, depth: int) -> None:
        self._spend(1)
        if not isinstance(node, dict):
            return
        depth += 1
        if depth > MAX_DEPTH:
            raise TooMuch
        weight, again = self._weight, self._again
        if not _UNEVALUATED.isdisjoint(node):
            # What looks for the rest checks all that the others have checked once more, and again.
            self._weight *= 3
            self._again = self._weight
        for keyword, rule in node.items():
            # A long enumeration or list of names is gone through, more or less.
            self._spend(1 + len(rule) // 10 if isinstance(rule, list | dict) else 1)
            self._weight += self._again
            for each in self._same_value(keyword, rule, node):
                self.visit(each, value, depth)
            self._weight -= self._again
            if isinstance(value, dict):
                self._members(keyword, rule, value, depth)
            elif isinstance(value, list):
                self._items(keyword, rule, value, depth)
            elif keyword == "pattern" and isinstance(value, str):
                self._match(rule, value)
        self._weight, self._again = weight, again

    def _same_value(self, keyword: str, rule: Any, node: dict[str, Any]) -> Iterable[Any]:
        """Return the subschemas that a keyword applies to the value itself."""
        if keyword in _SAME_VALUE:
            return [rule]
        if keyword in _SAME_VALUE_EACH and isinstance(rule, list):
            return rule
        if keyword in _SAME_VALUE_NAMED and isinstance(rule, dict):
            return rule.values()
        if keyword in _REFERENCES and isinstance(rule, str):
            return self._schema.targets(node, rule)
        return []

    def _members(self, keyword: str, rule: Any, value: dict[str, Any], depth: int) -> None:
        if keyword == "properties" and isinstance(rule, dict):
            for name, each in rule.items():
                if name in value:
                    self.visit(each, value[name], depth)
        elif keyword == "patternProperties" and isinstance(rule, dict):
            for pattern, each in rule.items():
                for name, member in value.items():
                    self._match(pattern, name)
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
        elif keyword == "uniqueItems" and rule is True:
            self._unlike(value)

    def _match(self, source: Any, text: str) -> None:
        """An automaton takes each character through each of its states, if it comes to the worst.

        One that looks around does so for each way to get there.
        """
        pattern = self._schema.pattern(source)
        length = len(text) if text.isascii() else 3 * len(text)
        once = length * pattern.size // 100
        if pattern.linear:
            self._spend(20 + once)
        else:
            self.backtracking.add((source, text))
            ways = MAX_BACKTRACKS
            if pattern.ways is not None:
                ways = min(ways, (length + 1) ** min(pattern.ways, 4))
            # Twice, since it is also seen whether it is given up.
            self._spend(40 + 2 * once + ways * (length * pattern.size + 100) // 1000)

    def _unlike(self, items: list[Any]) -> None:
        """Items are told apart by their hashes; those that have one hash, one by one."""
        self._spend(len(items))
        if all(isinstance(item, str | float | None) or _is_small(item) for item in items):
            return
        alike: Counter[str] = Counter()
        largest = 0
        for item in items:
            hashed: list[str] = []
            _hashed(item, hashed)
            self._spend(len(hashed) // 2)
            largest = max(largest, len(hashed))
            alike["\0".join(hashed)] += 1
        self._spend(sum(times * (times - 1) // 2 for times in alike.values()) * (1 + largest // 5))

    def _spend(self, steps: int) -> None:
        self._left -= steps * self._weight
        if self._left < 0:
            raise TooMuch


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and -_DOUBLES <= value <= _DOUBLES


def _hashed(value: Any, into: list[str]) -> None:
    """Gather what the validator makes a hash of: no brackets, and numbers as doubles."""
    if isinstance(value, dict):
        if len(value) > _WIDE:
            into.append("{}")
            return
        for name in sorted(value):
            into.append(name)
            _hashed(value[name], into)
    elif isinstance(value, list):
        for item in value:
            _hashed(item, into)
    elif isinstance(value, int) and not _is_small(value):
        try:
            into.extend([repr(float(value))] + [""] * (value.bit_length() // 32))
        except OverflowError:
            into.extend(["inf"] * (value.bit_length() // 32))
    else:
        into.append(str(value))


def size(value: Any) -> int:
    """Return of how many values a value consists.

    Raises `TooMuch` for more than `MAX_SIZE`, and if the value is nested too deeply.
    """
    size, level = 1, [value] if isinstance(value, _HOLDERS) else []
    for _ in range(MAX_DEPTH):
        size += sum(map(len, level))
        if size > MAX_SIZE:
            break
        level = [
            member
            for outer in level
            for member in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(member, _HOLDERS)
        ]
        if not level:
            return size
    raise TooMuch
