"""`--draft FILE`: rules for what a model did the same way each time, from a recording.

A *pair* is a call and the next one, in one session and without another call between them or beside
them. If a pair is seen often enough, and everything in its second call stands in the first one or
never changes, no model is needed for the second call. This module calls nothing.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOWHERE: Final = object()

Json = dict[str, Any]
Path_ = tuple[str | int, ...]


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
            for tools, found in pairs.items()
            if tools[0] == first and tools[1] != then
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
            lines.append("# The server does not mark it as read-only. Remove each '# ' to agree:")
            rule = [f"# {line}" for line in rule]
        lines += rule
    return "\n".join(lines)


def _read(path: Path) -> Iterator[Call]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield _call(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    raise ForPeople(
                        f"{str(path)!r}, line {number}, is not a call that --record wrote."
                    ) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ForPeople(f"Cannot read the recording {str(path)!r}: {why}.") from None
    except UnicodeDecodeError:
        raise ForPeople(f"The recording {str(path)!r} is not UTF-8.") from None


def _call(line: Json) -> Call:
    session, began, ended, tool = (line[name] for name in ("session", "began", "ended", "tool"))
    arguments = line["arguments"]
    if not all(isinstance(text, str) for text in (session, began, ended, tool)):
        raise ValueError
    if not isinstance(arguments, dict):
        raise ValueError
    result = {name: line.get(name) for name in ("isError", "content", "structuredContent")}
    step = Step(1, tool, arguments, result)
    return Call(
        session, began, ended, step, line.get("byProxy") is True, line.get("readOnly") is True
    )


def _pairs(calls: Sequence[Call]) -> dict[tuple[str, str], list[tuple[Call, Any]]]:
    """Return the pairs by their tools. A call that nothing follows pairs with ""."""
    sessions: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        sessions[call.session].append(call)
    pairs: dict[tuple[str, str], list[tuple[Call, Any]]] = defaultdict(list)
    for own in sessions.values():
        own.sort(key=lambda call: call.began)
        busy = ""
        alone = []
        for index, call in enumerate(own):
            following = own[index + 1] if index + 1 < len(own) else None
            overlaps = busy > call.began or (following and following.began < call.ended)
            alone.append(not overlaps and not call.by_proxy)
            busy = max(busy, call.ended)
        for index, call in enumerate(own):
            if not alone[index]:
                continue
            following = own[index + 1] if index + 1 < len(own) else None
            if following is None:
                pairs[call.step.tool, ""].append((call, None))
            elif alone[index + 1]:
                pairs[call.step.tool, following.step.tool].append((call, following))
    return pairs


def _rule(
    first: str, then: str, cases: Sequence[tuple[Call, Call]], others: Sequence[Call]
) -> list[str]:
    """Return the lines of one rule. Raises `Unexplained`."""
    if set(first) & set("*?["):
        raise Unexplained("its name has characters of a pattern")
    lines = ["[[rule]]", f"after = {_toml(first)}"]
    errors = {a.step.is_error for a, _ in cases}
    on = "any" if len(errors) > 1 else "error" if errors == {True} else "success"
    if on != "success":
        lines.append(f"on = {_toml(on)}")
    seen = [as_seen(a.step) for a, _ in cases]
    rest = [
        as_seen(other.step)
        for other in others
        if on == "any" or other.step.is_error is (on == "error")
    ]
    if rest:
        lines.append(f"when = {_toml(_condition(seen, rest))}")
    lines.append(f"then = {_toml(then)}")
    arguments = [b.step.arguments for _, b in cases]
    if len({frozenset(one) for one in arguments}) > 1:
        raise Unexplained("its arguments are not the same ones each time")
    written = [
        f"{_key(name)} = {value}  # {comment}"
        for name in arguments[0]
        for value, comment in [
            _explained(name, [one[name] for one in arguments], seen, f"arguments.{name}")
        ]
    ]
    return [*lines, *(["[rule.arguments]", *written] if written else [])]


def _explained(name: str, values: list[Any], seen: list[Json], place: str) -> tuple[str, str]:
    """Return an argument of a rule, and a comment on it. Raises `Unexplained`."""
    if None in values:
        raise Unexplained(f"{_comment(place)} is null, which TOML cannot write")
    found = [path for path in _paths(seen[0], values[0]) if _fits(path, seen, values)]
    found.sort(key=lambda path: (_SOURCES.index(str(path[0])), len(path)))
    places = [written for path in found if len(written := _path(path)) <= MAX_EXPRESSION]
    if all(_equal(value, values[0]) for value in values):
        also = f", also {_comment(', '.join(places[:3]))}" if places else ""
        looks_like_a_form = isinstance(values[0], dict) or name == "jmespath"
        value = _toml(values[0])
        return f"{{ value = {value} }}" if looks_like_a_form else value, f"a constant{also}"
    if places:
        also = f"also {_comment(', '.join(places[1:4]))}" if len(places) > 1 else "the only place"
        return f"{{ jmespath = {_toml(places[0])} }}", also
    parts: list[tuple[str, str, str]] = []
    if all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        for part in values[0]:
            one = _explained(part, [v[part] for v in values], seen, f"{place}.{part}")
            parts.append((f"{_key(part)} = {one[0]}", part, one[1]))
        text = f"{{ {', '.join(text for text, _, _ in parts)} }}"
    elif all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        for index in range(len(values[0])):
            one = _explained("", [v[index] for v in values], seen, f"{place}[{index}]")
            parts.append((one[0], f"[{index}]", one[1]))
        text = f"[{', '.join(text for text, _, _ in parts)}]"
    else:
        raise Unexplained(f"{_comment(place)} is not in the first call, so it takes a model")
    return text, "; ".join(f"{_comment(part)}: {comment}" for _, part, comment in parts)


def _condition(seen: Sequence[Json], rest: Sequence[Json]) -> str:
    """Return a comparison that holds for the cases and no other call. Raises `Unexplained`."""
    for path in _paths(seen[0]):
        values, others = ([_at(one, path) for one in calls] for calls in (seen, rest))
        written = _path(path)
        if all(isinstance(value, bool) for value in values + others):
            if len(set(values)) == 1 and values[0] not in others:
                return f"{written} == `{json.dumps(values[0])}`"
        elif all(isinstance(value, str) for value in values + others):
            texts = {*values, *others}
            if len(texts) > FEW or set(values) & set(others):
                continue
            if len(set(values)) == 1:
                return f"{written} == {_literal(values[0])}"
            if len(set(others)) == 1:
                return f"{written} != {_literal(others[0])}"
        elif all(isinstance(value, list) for value in values + others):
            if all(values) and not any(others):
                return written
            if all(others) and not any(values):
                return f"{written} == `[]`"
    raise Unexplained("it follows only sometimes, and no single member says when")


def _paths(seen: Json, value: Any = _NOWHERE) -> Iterator[Path_]:
    """Yield the places in a call, or those that have this value."""
    left: list[tuple[Path_, Any]] = [((name,), seen[name]) for name in _SOURCES]
    for path, found in left:
        if value is _NOWHERE or _equal(found, value):
            yield path
        if isinstance(found, dict):
            left += [((*path, name), part) for name, part in found.items()]
        elif isinstance(found, list):
            left += [((*path, index), part) for index, part in enumerate(found)]


def _fits(path: Path_, seen: Sequence[Json], values: Sequence[Any]) -> bool:
    return all(_equal(_at(one, path), value) for one, value in zip(seen, values, strict=True))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Most are not, which costs little."""
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return type(one) is type(other) and len(one) == len(other) and same(one, other)
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def _at(value: Any, path: Path_) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _path(path: Path_) -> str:
    """Return a path as JMESPath."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_member(part)}" for part in path]
    return "".join(parts).removeprefix(".")


def _member(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _literal(text: str) -> str:
    if "'" not in text and "\\" not in text:
        return f"'{text}'"
    return "`" + json.dumps(text).replace("`", "\\`") + "`"


def _toml(value: Any) -> str:
    """Return a value in TOML, on one line. Raises `Unexplained` for null."""
    if value is None:
        raise Unexplained("it sends null, which TOML cannot write")
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_toml(part)}' for name, part in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if re.search("[\ud800-\udfff]", value):
        raise Unexplained("it has half of a surrogate pair")
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)
    return f'"{shown}"'


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _comment(text: str) -> str:
    """Return foreign text for a comment: one line, without control characters."""
    return one_line(text, 200)
