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
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tool_chaining import Step
from tool_chaining.errors import ForPeople
from tool_chaining.expressions import MAX_EXPRESSION
from tool_chaining.rules import Rules, RulesUnreadable, as_seen
from tool_chaining.text import one_line
from tool_chaining.values import same

SUPPORT: Final = 3
"""How often a pair must be seen by default."""

FEW: Final = 5
"""The most different values of a text that decides whether a call follows."""

MAX_LINE: Final = 16 * 1024 * 1024
"""The longest line of a recording, in bytes."""

_SOURCES: Final = ("structuredContent", "json", "arguments")
_TEXT: Final = ("content", 0, "text")
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
    began: datetime
    ended: datetime
    step: Step
    read_only: bool
    """Whether the server marks the tool as read-only."""
    counts: bool
    """Whether the client made it, and it has a result."""

    @cached_property
    def seen(self) -> Json:
        """The call as a rule's expressions see it."""
        return as_seen(self.step)


def drafted(path: Path, support: int = SUPPORT) -> str:
    """Return a file of rules for the pairs in a recording. Raises `ForPeople`."""
    calls, skipped = _read(path)
    lines = [f"# Drafted from {_comment(path.name)}: {len(calls)} calls. Read each rule first."]
    if skipped:
        lines.append(f"# Lines that are no calls, and were skipped: {skipped}.")
    pairs = _pairs(calls)
    often = [tools for tools, cases in pairs.items() if tools[1] and len(cases) >= support]
    if not often:
        lines.append(f"# No call followed another one {support} times.")
    for first, then in sorted(often, key=lambda tools: (-len(pairs[tools]), tools)):
        cases = pairs[first, then]
        found = [pairs[tools] for tools in pairs if tools[0] == first and tools[1] != then]
        others = [a for one in found for a, _ in one]
        sessions = len({a.session for a, _ in cases})
        times = f"{len(cases)} of {len(cases) + len(others)} times"
        lines += ["", f"# {times}, in {sessions} session{'s' if sessions > 1 else ''}"]
        try:
            rule = _rule(first, then, cases, others)
            Rules.loads("\n".join(rule), "it cannot be written as a rule")
        except (Unexplained, RulesUnreadable, RecursionError) as error:
            why = _comment(str(error).rstrip(".") or "it is nested too deeply")
            lines.append(f"# No rule for {_comment(first)} -> {_comment(then)}: {why}.")
            continue
        if not all(b.read_only for _, b in cases):
            lines.append("# The server does not mark it as read-only. To agree, remove each '# ':")
            rule = [f"# {line}" for line in rule]
        lines += rule
    return "\n".join(lines)


def _read(path: Path) -> tuple[list[Call], int]:
    """Return the calls of a recording, and how many lines are none."""
    calls, skipped = [], 0
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE):
                try:
                    calls += [_call(json.loads(line))] if line.strip() else []
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    skipped += 1
                if skipped and not calls:
                    raise ForPeople(f"{str(path)!r} is not what --record wrote.")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ForPeople(f"Cannot read the recording {str(path)!r}: {why}.") from None
    return calls, skipped


def _call(line: Json) -> Call:
    session, tool = line["session"], line["tool"]
    if not isinstance(session, str) or not isinstance(tool, str):
        raise ValueError
    times = (datetime.fromisoformat(line[name]) for name in ("began", "ended"))
    began, ended = (time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)
    step = Step(1, tool, {**line["arguments"]}, line)
    counts = not line.get("byProxy") and not line.get("unanswered")
    return Call(session, began, ended, step, line.get("readOnly") is True, counts)


def _pairs(calls: Sequence[Call]) -> dict[tuple[str, str], list[tuple[Call, Any]]]:
    """Return the pairs by their tools. A call that no call follows alone pairs with ""."""
    sessions: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        sessions[call.session].append(call)
    pairs: dict[tuple[str, str], list[tuple[Call, Any]]] = defaultdict(list)
    for own in sessions.values():
        own.sort(key=lambda call: call.began)
        busy, alone = own[0].began, []
        """Until when earlier calls run, and the calls that run beside no other, or None."""
        for call, following in zip(own, [*own[1:], None], strict=True):
            overlaps = busy > call.began or (following and following.began < call.ended)
            alone.append(call if call.counts and not overlaps else None)
            busy = max(busy, call.ended)
        for first, then in zip(alone, [*alone[1:], None], strict=True):
            if first:
                pairs[first.step.tool, then.step.tool if then else ""].append((first, then))
    return pairs


def _rule(
    first: str, then: str, cases: Sequence[tuple[Call, Call]], others: Sequence[Call]
) -> list[str]:
    """Return the lines of one rule. Raises `Unexplained`."""
    if set(first) & set("*?["):
        raise Unexplained("its name has characters of a pattern")
    if all(b.step.is_error for _, b in cases):
        raise Unexplained("it fails each time")
    errors = {a.step.is_error for a, _ in cases}
    rest = [other.seen for other in others if other.step.is_error in errors]
    seen = [a.seen for a, _ in cases]
    lines = ["[[rule]]", f"after = {_toml(first)}"]
    if True in errors:
        lines.append(f"on = {_toml('any' if False in errors else 'error')}")
    if rest:
        lines.append(f"when = {_toml(_condition(seen, rest))}")
    lines.append(f"then = {_toml(then)}")
    arguments = [b.step.arguments for _, b in cases]
    names, unexplained = dict.fromkeys(name for one in arguments for name in one), []
    lines += ["[rule.arguments]"] if names else []
    for name in names:
        try:
            value, comment = _explained([one.get(name, _NOWHERE) for one in arguments], seen, name)
            lines.append(f"{_key(name)} = {value}  # {comment}")
        except Unexplained as why:
            unexplained.append(str(why))
    if unexplained:
        raise Unexplained("; ".join(unexplained))
    return lines


def _explained(values: list[Any], seen: list[Json], name: str) -> tuple[str, str]:
    """Return an argument as a rule has it, and a comment on it. Raises `Unexplained`."""
    if _NOWHERE in values:
        raise Unexplained(f"{_comment(name)} is sent only sometimes, so it takes a model")
    found = [place for place in _places(seen[0], values[0]) if _fits(place, seen, values)]
    found.sort(key=lambda place: (_SOURCES.index(str(place[0])), len(place), len(_path(place))))
    paths = [path for place in found if len(path := _path(place)) <= MAX_EXPRESSION]
    if all(_equal(value, values[0]) for value in values):
        value = _toml(values[0])
        looks_like_a_form = isinstance(values[0], dict) or name.endswith("jmespath")
        also = f", also {_comment(', '.join(paths))}" if paths else ""
        return f"{{ value = {value} }}" if looks_like_a_form else value, f"a constant{also}"
    if paths and None not in values:
        also = f"also {_comment(', '.join(paths[1:]))}" if len(paths) > 1 else "the only place"
        return f"{{ jmespath = {_toml(paths[0])} }}", also
    keys: Any = ()
    if all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        keys = values[0].keys()
    elif all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        keys = range(len(values[0]))
    if not keys:
        texts = [str(_at(one, _TEXT)) for one in seen]
        if all(isinstance(v, str) and v and v in t for v, t in zip(values, texts, strict=True)):
            raise Unexplained(f"{_comment(name)} stands in the text, where a match can find it")
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
        one, other = _at(seen[0], place), _at(rest[0], place)
        kind = type(one)
        if kind not in (bool, str, list) or type(other) is not kind or one == other:
            continue
        steady = all(_at(each, place) == one for each in seen)
        if not steady and not all(_at(each, place) == other for each in rest):
            continue  # Most places: so they cost little.
        values, others = ([_at(each, place) for each in calls] for calls in (seen, rest))
        path, every = _path(place), values + others
        if not all(type(value) is kind for value in every):
            continue
        if kind is list:
            if all(values) and not any(others):
                return path
            if all(others) and not any(values):
                return f"{path} == `[]`"
            continue
        # An id decides nothing: each value comes more than once.
        is_few = kind is bool or len({*every}) <= min(FEW, len(every) // 2)
        if is_few and {*values}.isdisjoint(others):
            return f"{path} {'==' if steady else '!='} {_literal(one if steady else other)}"
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
