"""The user's rules: which tool follows which, where the server does not say.

    rules = Rules.load("rules.toml")
    follower = Follower(client, consent=policy, rules=rules)

A rule stands in for the directive that a result lacks. From there on, everything is as for any
directive (TC-C-58). Needs the extra `[rules]`.
"""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tool_chaining.content import Json, content_of, is_error, member
from tool_chaining.directive import MAX_TITLE, Directive, Found, Malformed, is_title
from tool_chaining.errors import ForPeople
from tool_chaining.expressions import (
    NO_MEMBERS,
    CannotEvaluate,
    Data,
    Expression,
    ExpressionError,
    NoValue,
    check,
    expressions_in,
    quoted,
)
from tool_chaining.result import Step
from tool_chaining.text import one_line, read_small
from tool_chaining.values import check_json

MAX_WORK: Final = 500_000_000
"""The most work that all rules may take after one call, as `expressions.Data` counts it: several
expressions on a result of a megabyte."""

_SEEN: Final = {
    **dict.fromkeys(("tool", "isError"), NO_MEMBERS),
    "content": (),
    **dict.fromkeys(("arguments", "structuredContent", "json")),
}
ROOT: Final = {**_SEEN, "steps": (_SEEN,)}
"""The shape of what an expression sees, as `as_seen` returns it."""

_NEEDED: Final = ("after", "then")
_KNOWN: Final = (*_NEEDED, "when", "on", "title", "ask", "again", "arguments")
_ON: Final = ("success", "error", "any")
_FORMS: Final = ("jmespath", "text", "match", "value")
_PATTERN: Final = {"match", "in"}
_LITERAL: Final = "To send the table itself, write { value = { … } }."
_TOO_DEEP: Final = "it is nested too deeply."
_ABSENT: Final = object()


class RulesUnreadable(ForPeople):
    """A file of rules cannot be used; the message is one line for people."""


@dataclass(frozen=True)
class Rule:
    """One rule: after a call of one tool, call another."""

    number: int
    """Its place in the file, from 1."""
    after: str
    """The tool whose result has arrived; `*` and `?` as in a shell."""
    then: Expression
    """The tool to call, or an expression for its name if there is an `allow`."""
    allow: tuple[str, ...] = ()
    """The patterns that a name from a result must match."""
    when: Expression | None = None
    """The condition; None: always. One with `match` is met if the pattern matches."""
    on: str = "success"
    """Which results it applies to: "success", "error" or "any"."""
    title: str | None = None
    """Why the step is taken, for the person who is asked."""
    ask: bool = True
    """Whether to ask the person even if the server's hints are trusted. If not, the rule's author
    has agreed to the step."""
    again: bool = False
    """Whether the rule's author has agreed to repetitions too: the step is never in doubt."""
    arguments: Any = field(default_factory=dict)
    """The arguments, with expressions in them."""

    def expressions(self) -> Iterator[Expression]:
        """Return all expressions of the rule. Raises `ExpressionError` for a text without any."""
        yield from [self.when] if self.when is not None else []
        yield from [self.then] if self.allow else []
        yield from _expressions(self.arguments, is_whole=True)

    def concerns(self, step: Step) -> bool:
        """Return whether the rule applies to this result, apart from its condition."""
        kinds = ("any", "error" if step.is_error else "success")
        return self.on in kinds and fnmatchcase(step.tool, self.after)

    def repeats(self, tool: str, step: Step) -> bool:
        """Return whether a pattern in `after` matches a call of the tool that the rule calls."""
        return tool == step.tool and self.after != step.tool


@dataclass(frozen=True)
class Match:
    """The first rule that matches, and what it leads to."""

    rule: Rule
    reading: Found | Malformed
    """The call that it makes. If an expression cannot be evaluated, the chain ends: the rule could
    be the guard of a payment."""
    unfilled: str = ""
    """Why the call cannot be made: a required argument has no value. It then has no arguments."""


@dataclass(frozen=True)
class Rules:
    """The rules of a file, in order: the first one that matches counts."""

    rules: tuple[Rule, ...]

    @classmethod
    def load(cls, path: str | Path) -> "Rules":
        """Read a file of rules. Raises `RulesUnreadable`, with the line where the rule begins."""
        try:
            return cls.loads(read_small(path), str(path))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise RulesUnreadable(f"Cannot read the rules in {str(path)!r}: {why}.") from None
        except ValueError as error:
            why = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise RulesUnreadable(f"{path}: {why}") from None

    @classmethod
    def loads(cls, text: str, path: str) -> "Rules":
        """Read the text of a file of rules; `path` names it in `RulesUnreadable`."""
        try:
            found = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            why = _TOO_DEEP if isinstance(error, RecursionError) else one_line(str(error))
            raise RulesUnreadable(f"{path}: {why}") from None
        begins = [n for n, line in enumerate(text.splitlines(), 1) if _BEGINS.match(line)]

        def fail(number: int, problem: str) -> RulesUnreadable:
            line = f", line {begins[number - 1]}" if 0 < number <= len(begins) else ""
            rule = f" (rule {number})" if number else ""
            return RulesUnreadable(f"{path}{line}{rule}: {problem}")

        if not found and text.strip():
            return cls(())  # Comments: a draft without a rule that is agreed to.
        rules = found.pop("rule", None)
        if found:
            raise fail(0, f"{_unknown(next(iter(found)), ['rule'])} Rules begin with [[rule]].")
        if not isinstance(rules, list) or not rules or not all(isinstance(r, dict) for r in rules):
            raise fail(0, "it has no rules; each begins with [[rule]].")
        made = []
        for number, written in enumerate(rules, 1):
            try:
                made.append(_rule(number, written))
            except (ValueError, RecursionError) as problem:
                why = _TOO_DEEP if isinstance(problem, RecursionError) else str(problem)
                raise fail(number, why) from None
        return cls(tuple(made))

    def next(self, steps: Sequence[Step], note: Callable[[str], None]) -> Match | None:
        """Return what follows the last of these steps by the first rule that matches; else None.

        `note` is called with a sentence for the operator about a rule that does not match.
        """
        concerned = [rule for rule in self.rules if rule.concerns(steps[-1])]
        if not concerned:
            return None
        seen = [as_seen(step) for step in steps]
        data = Data({**seen[-1], "steps": seen}, MAX_WORK, measured=seen)
        for rule in concerned:
            number = rule.number
            try:
                is_met = rule.when is None or _is_met(rule.when, data)
                tool: Any = data.evaluate(rule.then) if is_met and rule.allow else rule.then
            except CannotEvaluate as problem:
                return Match(rule, Malformed(f"rule {number}: {problem}"))
            if not is_met and data.missing:
                missing = ", ".join(sorted(data.missing))
                note(f"rule {number} does not match: {missing} is missing in the result")
            data.missing.clear()
            if not is_met or tool is None or rule.repeats(tool, steps[-1]):
                continue
            if rule.allow and not _allowed(tool, rule.allow):
                shown = one_line(json.dumps(tool, ensure_ascii=False), 80)
                note(f"rule {number} does not match: {shown} is not in its allow")
                continue
            try:
                arguments = _filled(rule.arguments, data, "arguments")
                check_json(arguments, "arguments")
            except (NoValue, ValueError) as problem:
                unfilled = f"rule {number}: {problem}"
                return Match(rule, Found(Directive(tool, {}, rule.title)), unfilled)
            return Match(rule, Found(Directive(tool, arguments, rule.title)))
        return None


_BEGINS: Final = re.compile(r"\s*\[\[\s*[\"']?rule[\"']?\s*\]\]")


def _rule(number: int, written: Json) -> Rule:
    """Parse one rule of the file. Raises ValueError with a sentence."""
    if unknown := [name for name in written if name not in _KNOWN]:
        raise ValueError(_unknown(unknown[0], _KNOWN))
    if missing := [name for name in _NEEDED if name not in written]:
        raise ValueError(f"{missing[0]} is missing.")
    given = {"on": "success", "ask": True, "again": False, "arguments": {}, **written}
    given = {"title": None, "when": None, **given}
    then: Any = given["then"]
    allow: Any = ()
    if isinstance(then, dict):
        forms = ("jmespath", "match", "in", "allow")
        if unknown := [name for name in then if name not in forms]:
            raise ValueError(f"then: {_unknown(unknown[0], forms)}")
        allow = then.get("allow")
        pattern = {name: then[name] for name in then if name in _PATTERN}
        then = pattern or then.get("jmespath")
        if not isinstance(allow, list) or not allow or not all(map(_is_text, allow)):
            raise ValueError("then.allow must be the patterns of the tools that it may name.")
        if set(str(given["after"])) <= {"*", "?"}:
            raise ValueError(
                "after must name tools if then comes from a result, and not be wildcards alone."
            )
    if isinstance(given["when"], dict):
        for name in given["when"].keys() - _PATTERN:
            raise ValueError(f"when: {_unknown(name, sorted(_PATTERN))}")
    for name, value, fits, form in (
        ("after", given["after"], _is_text, "a tool's name or pattern"),
        ("then", then, _is_expression, "a tool's name, or { jmespath = …, allow = […] }"),
        ("when", given["when"], lambda it: it is None or _is_expression(it), "an expression"),
        ("on", given["on"], lambda it: it in _ON, f"one of {', '.join(_ON)}"),
        ("ask", given["ask"], lambda it: isinstance(it, bool), "true or false"),
        ("again", given["again"], lambda it: isinstance(it, bool), "true or false"),
        ("title", given["title"], _is_plain, f"a text of 1 to {MAX_TITLE} characters on one line"),
        ("arguments", given["arguments"], lambda it: isinstance(it, dict), "a table"),
    ):
        if not fits(value):
            raise ValueError(f"{name} must be {form}, not {one_line(repr(value), 60)}.")
    _check_arguments(given["arguments"], "arguments", is_whole=True)
    values = {**given, "then": then, "allow": tuple(allow)}
    rule = Rule(number, **{name: values[name] for name in (*_KNOWN, "allow")})
    for expression in rule.expressions():
        try:
            check(expression, ROOT)
        except ExpressionError as error:
            end = "" if str(error).endswith("?") else "."
            raise ValueError(f"{quoted(expression)} cannot be used: {error}{end}") from None
    return rule


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    return f"{one_line(repr(name), 60)} is not known. {hint}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_expression(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == _PATTERN and all(map(_is_text, value.values()))
    return _is_text(value)


def _is_plain(title: Any) -> bool:
    return title is None or is_title(title)


def _is_true(value: Any) -> bool:
    """Return whether a value is truthy in JMESPath: zero is, and anything empty is not."""
    return bool(value) or (isinstance(value, int | float) and value is not False)


def _is_met(when: Expression, data: Data) -> bool:
    value = data.evaluate(when)
    return _is_true(value) if isinstance(when, str) else value is not None


def form_of(template: Any, *, is_whole: bool = False) -> str | None:
    """Return which form of an expression a part of the arguments has; None if it has none.

    `is_whole`: it is the table of all arguments. Its members are names of arguments, but for
    `jmespath` with a text.
    """
    if not isinstance(template, dict):
        return None
    if is_whole:
        return "jmespath" if isinstance(template.get("jmespath"), str) else None
    return next((form for form in _FORMS if form in template), None)


def _check_arguments(template: Any, place: str, *, is_whole: bool = False) -> None:
    """Raise ValueError if a part of the arguments cannot be used."""
    form = form_of(template, is_whole=is_whole)
    if form is not None:
        known = {form} if is_whole else {form, "optional", *(("in",) if form == "match" else ())}
        if more := sorted(template.keys() - known):
            also = "" if is_whole else ", only optional = true can"
            shown = one_line(repr(more[0]), 60)
            raise ValueError(f"{place}: {shown} cannot stand beside {form}{also}. {_LITERAL}")
        if not isinstance(template.get("optional", False), bool):
            raise ValueError(f"{place}: optional must be true or false. {_LITERAL}")
        if form == "value":
            return _check_values(template["value"], place)
        if not _is_text(template[form]):
            raise ValueError(f"{place}: {form} must be a text in quotes. {_LITERAL}")
        if form == "match" and not _is_text(template.get("in")):
            where = 'in = "content[0].text"'
            raise ValueError(f"{place}: match also needs where the text is, such as {where}.")
        if form == "text":
            try:
                expressions_in(template["text"])
            except ExpressionError as error:
                raise ValueError(f"{place}: {error}.") from None
    elif isinstance(template, dict):
        if not is_whole:
            _check_spelling(template, place)
        for name, part in template.items():
            _check_arguments(part, f"{place}.{name}")
    elif isinstance(template, list):
        for part in template:
            _check_arguments(part, place)
    else:
        _check_json(template, place)


def _check_spelling(template: Json, place: str) -> None:
    """Raise ValueError for a table that was meant as an expression, with a misspelt key."""
    names = [name for name in template if name not in ("optional", "in")]
    if len(names) != 1 or not isinstance(template[names[0]], str):
        return
    near = get_close_matches(names[0].lower(), _FORMS, n=1, cutoff=0.8)
    if names[0].lower() in ("regex", "regexp"):
        near = ["match"]
    if near or "optional" in template:
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_FORMS)}."
        shown = one_line(repr(names[0]), 60)
        raise ValueError(f"{place}: {shown} is not known. {hint} {_LITERAL}")


def _check_values(value: Any, place: str) -> None:
    """Raise ValueError if a part of a value is not JSON."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        _check_values(part, place)
    _check_json(value, place)


def _check_json(value: Any, place: str) -> None:
    """Raise ValueError if a single value is not JSON, such as a date."""
    is_number = isinstance(value, float) and not math.isfinite(value)
    if is_number or not isinstance(value, dict | list | str | int | float):
        kind = type(value).__name__
        raise ValueError(f"{place}: a {kind} such as {value} is not JSON; write it as a text.")


def _expressions(template: Any, *, is_whole: bool = False) -> Iterator[Expression]:
    form = form_of(template, is_whole=is_whole)
    if form in ("jmespath", "match"):
        yield _expression(template)
    elif form == "text":
        yield from expressions_in(template["text"])
    elif form is None and isinstance(template, dict | list):
        for part in template.values() if isinstance(template, dict) else template:
            yield from _expressions(part)


def _expression(template: Json) -> Expression:
    """Return the expression of a table with `jmespath`, or with `match` and `in`."""
    if "jmespath" in template:
        return str(template["jmespath"])
    return {name: template[name] for name in _PATTERN}


def is_literal(template: Any) -> bool:
    """Return whether a part of the arguments contains no expression."""
    return next(_expressions(template), None) is None and form_of(template) is None


def _filled(template: Any, data: Data, place: str) -> Any:
    """Return arguments with the values of their expressions. Raises `NoValue`."""
    is_whole = place == "arguments"
    form = form_of(template, is_whole=is_whole)
    if form == "value":
        return template["value"]
    if form is not None:
        try:
            value = (
                data.text(template[form]) if form == "text" else data.needed(_expression(template))
            )
        except NoValue as problem:
            if template.get("optional") and not isinstance(problem, CannotEvaluate):
                return _ABSENT
            raise NoValue(f"{place}: {problem}") from None
        if is_whole and not isinstance(value, dict):
            raise NoValue(f"{place}: {quoted(template['jmespath'])} gives no object")
        return value
    if isinstance(template, dict):
        parts = {name: _filled(part, data, f"{place}.{name}") for name, part in template.items()}
        return {name: part for name, part in parts.items() if part is not _ABSENT}
    if isinstance(template, list):
        found = [_filled(part, data, f"{place}[{n}]") for n, part in enumerate(template)]
        return [part for part in found if part is not _ABSENT]
    return template


def _allowed(tool: Any, allow: Sequence[str]) -> bool:
    return isinstance(tool, str) and any(fnmatchcase(tool, pattern) for pattern in allow)


def as_seen(step: Step) -> Json:
    """Return a call as expressions see it. `json` is its first text, parsed."""
    content = content_of(step.result)
    texts = (member(item, "text") for item in content if member(item, "type") == "text")
    try:
        found = json.loads(next(texts, "") or "null")
    except (TypeError, ValueError, RecursionError):
        found = None
    return {
        "tool": step.tool,
        "arguments": step.arguments,
        "isError": is_error(step.result),
        "content": content,
        "structuredContent": step.result.get("structuredContent"),
        "json": found,
    }
