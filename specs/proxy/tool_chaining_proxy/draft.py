"""`--draft FILE`: rules for what a model did the same way each time, from a recording.

A *pair* is a call and the next one, in one session, with no other call between them or beside
them. If a pair is seen often enough, and everything in its second call stands in the first one or
never changes, no model is needed for the second call. This module calls nothing.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tool_chaining import Step
from tool_chaining.errors import ForPeople
from tool_chaining.expressions import MAX_EXPRESSION
from tool_chaining.rules import as_seen
from tool_chaining.text import one_line
from tool_chaining.values import same

SUPPORT: Final = 3
"""How often a pair must be seen by default."""

FEW: Final = 5
"""The most different values of a text that decides whether a call follows."""

_SOURCES: Final = ("structuredContent", "json", "arguments")
_NOWHERE: Final = object()
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Json = dict[str, Any]
Place = tuple[str | int, ...]
"""Where a value is in a call: the names and the indexes on the way to it."""


class Unexplained(Exception):
    """A rule cannot be drafted; the message is a clause that says why."""


@dataclass(frozen=True)
class Call:
    """One line of a recording."""

    session: str
    began: str
    ended: str
    step: Step
    by_proxy: bool
    read_only: bool
    """Whether the server marks the tool as read-only."""


def drafted(path: Path, support: int = SUPPORT) -> str:
    """Return a file of rules for the pairs in a recording. Raises `ForPeople`."""
    calls = [*_read(path)]
    pairs = _pairs(calls)
    lines = [f"# Drafted from {_comment(path.name)}: {len(calls)} calls. Read each rule first."]
    for first, then in sorted(pairs, key=lambda tools: (-len(pairs[tools]), tools)):
        cases = pairs[first, then]
        if not then or len(cases) < support:
            continue
        others = [
            a
            for (tool, other), found in pairs.items()
            if tool == first and other != then
            for a, _ in found
        ]
        sessions = len({a.session for a, _ in cases})
        times = f"{len(cases)} of {len(cases) + len(others)} times, in {sessions} sessions"
        lines += ["", f"# {times}"]
        try:
            rule = _rule(first, then, cases, others)
        except Unexplained as why:
            lines.append(f"# No rule for {_comment(first)} -> {_comment(then)}: {why}.")
            continue
        if not all(b.read_only for _, b in cases):
            lines.append("# The server does not mark it as read-only. To agree, remove each '# ':")
            rule = [f"# {line}" for line in rule]
        lines += rule
    return "\n".join(lines)


def _read(path: Path) -> Iterator[Call]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield _call(json.loads(line))
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    where = f"{str(path)!r}, line {number},"
                    raise ForPeople(f"{where} is not a call that --record wrote.") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ForPeople(f"Cannot read the recording {str(path)!r}: {why}.") from None


def _call(line: Json) -> Call:
    session, began, ended, tool = (line[name] for name in ("session", "began", "ended", "tool"))
    if not all(isinstance(text, str) for text in (session, began, ended, tool)):
        raise ValueError
    step = Step(1, tool, {**line["arguments"]}, line)
    by_proxy, read_only = (line.get(name) is True for name in ("byProxy", "readOnly"))
    return Call(session, began, ended, step, by_proxy, read_only)


def _pairs(calls: Sequence[Call]) -> dict[tuple[str, str], list[tuple[Call, Any]]]:
    """Return the pairs by their tools. A call that nothing follows pairs with ""."""
    sessions: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        sessions[call.session].append(call)
    pairs: dict[tuple[str, str], list[tuple[Call, Any]]] = defaultdict(list)
    for own in sessions.values():
        own.sort(key=lambda call: call.began)
        busy, alone = "", []
        """Until when earlier calls run, and the calls that run beside no other, or None."""
        for call, following in zip(own, [*own[1:], None], strict=True):
            overlaps = busy > call.began or (following and following.began < call.ended)
            alone.append(None if overlaps or call.by_proxy else call)
            busy = max(busy, call.ended)
        for first, then in pairwise(alone):
            if first and then:
                pairs[first.step.tool, then.step.tool].append((first, then))
        if last := alone[-1]:
            pairs[last.step.tool, ""].append((last, None))
    return pairs


def _rule(
    first: str, then: str, cases: Sequence[tuple[Call, Call]], others: Sequence[Call]
) -> list[str]:
    """Return the lines of one rule. Raises `Unexplained`."""
    if set(first) & set("*?["):
        raise Unexplained("its name has characters of a pattern")
    errors = {a.step.is_error for a, _ in cases}
    rest = [as_seen(other.step) for other in others if other.step.is_error in errors]
    seen = [as_seen(a.step) for a, _ in cases]
    arguments = [b.step.arguments for _, b in cases]
    if len({frozenset(one) for one in arguments}) > 1:
        raise Unexplained("its arguments are not the same ones each time")
    lines = ["[[rule]]", f"after = {_toml(first)}"]
    if True in errors:
        lines.append(f"on = {_toml('any' if False in errors else 'error')}")
    if rest:
        lines.append(f"when = {_toml(_condition(seen, rest))}")
    lines.append(f"then = {_toml(then)}")
    if arguments[0]:
        lines.append("[rule.arguments]")
    for name in arguments[0]:
        value, comment = _explained([one[name] for one in arguments], seen, name)
        lines.append(f"{_key(name)} = {value}  # {comment}")
    return lines


def _explained(values: list[Any], seen: list[Json], name: str) -> tuple[str, str]:
    """Return an argument as a rule has it, and a comment on it. Raises `Unexplained`."""
    found = [place for place in _places(seen[0], values[0]) if _fits(place, seen, values)]
    found.sort(key=lambda place: (_SOURCES.index(str(place[0])), len(place)))
    paths = [path for place in found if len(path := _path(place)) <= MAX_EXPRESSION]
    if all(_equal(value, values[0]) for value in values):
        value = _toml(values[0])
        looks_like_a_form = isinstance(values[0], dict) or name.endswith("jmespath")
        also = f", also {_comment(', '.join(paths[:3]))}" if paths else ""
        return f"{{ value = {value} }}" if looks_like_a_form else value, f"a constant{also}"
    if paths and None not in values:
        also = f"also {_comment(', '.join(paths[1:4]))}" if len(paths) > 1 else "the only place"
        return f"{{ jmespath = {_toml(paths[0])} }}", also
    keys = range(0)
    if all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        keys = values[0].keys()
    elif all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        keys = range(len(values[0]))
    if not keys:
        raise Unexplained(f"{_comment(name)} is not in the first call, so it takes a model")
    parts = {key: _explained([v[key] for v in values], seen, f"{name}.{key}") for key in keys}
    comment = "; ".join(f"{_comment(str(key))}: {part[1]}" for key, part in parts.items())
    if isinstance(values[0], list):
        return f"[{', '.join(part[0] for part in parts.values())}]", comment
    members = ", ".join(f"{_key(str(key))} = {part[0]}" for key, part in parts.items())
    return f"{{ {members} }}", comment


def _condition(seen: Sequence[Json], rest: Sequence[Json]) -> str:
    """Return a comparison that holds for the cases and no other call. Raises `Unexplained`."""
    for place in _places(seen[0]):
        values, others = ([_at(one, place) for one in calls] for calls in (seen, rest))
        path, every = _path(place), values + others
        if all(isinstance(value, list) for value in every):
            if all(values) and not any(others):
                return path
            if all(others) and not any(values):
                return f"{path} == `[]`"
        is_few = all(isinstance(value, str) for value in every) and len({*every}) <= FEW
        if not is_few and not all(isinstance(value, bool) for value in every):
            continue
        if {*values} & {*others}:
            continue
        if len({*values}) == 1:
            return f"{path} == {_literal(values[0])}"
        if len({*others}) == 1:
            return f"{path} != {_literal(others[0])}"
    raise Unexplained("it follows only sometimes, and no single member says when")


def _places(seen: Json, value: Any = _NOWHERE) -> Iterator[Place]:
    """Yield the places in a call, or those that have this value, the shortest first."""
    left: list[tuple[Place, Any]] = [((name,), seen[name]) for name in _SOURCES]
    for place, found in left:
        if value is _NOWHERE or _equal(found, value):
            yield place
        if isinstance(found, dict):
            left += [((*place, name), part) for name, part in found.items()]
        elif isinstance(found, list):
            left += [((*place, index), part) for index, part in enumerate(found)]


def _fits(place: Place, seen: Sequence[Json], values: Sequence[Any]) -> bool:
    return all(_equal(_at(one, place), value) for one, value in zip(seen, values, strict=True))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Most are not, which costs little."""
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return type(one) is type(other) and len(one) == len(other) and same(one, other)
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def _at(value: Any, place: Place) -> Any:
    for part in place:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return None
    return value


def _path(place: Place) -> str:
    """Return a place as a path of JMESPath."""
    written = ""
    for part in place:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            written += f".{part}" if _PLAIN.fullmatch(part) else f".{json.dumps(part)}"
    return written.removeprefix(".")


def _literal(value: str | bool) -> str:
    """Return a value as a literal of JMESPath."""
    if isinstance(value, str) and not set(value) & {"'", "\\"}:
        return f"'{value}'"
    return "`" + json.dumps(value).replace("`", "\\`") + "`"


def _toml(value: Any) -> str:
    """Return a value in TOML, on one line. Raises `Unexplained` if that is not possible."""
    if value is None or (isinstance(value, str) and re.search("[\ud800-\udfff]", value)):
        raise Unexplained("it sends null or half of a surrogate pair, which TOML cannot write")
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_toml(part)}' for name, part in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in plain)
    return f'"{shown}"'


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _toml(name)


def _comment(text: str) -> str:
    """Return foreign text for a comment: one line, without control characters."""
    return one_line(text, 200)
