"""`--rules FILE --check`: what is wrong with rules for a server, without calling a tool."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tool_chaining import Tool
from tool_chaining.arguments import ArgumentCheck, lists_all, unknown_member
from tool_chaining.content import member
from tool_chaining.errors import ForPeople
from tool_chaining.expressions import NO_MEMBERS, Expression, ExpressionError, Shape, parsed, quoted
from tool_chaining.rules import ROOT, Rule, Rules, form_of, is_literal
from tool_chaining.text import one_line
from tool_chaining.text import quoted as in_quotes
from tool_chaining.tools import read_list
from tool_chaining_proxy import NAME, __version__
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.session import Session
from tool_chaining_proxy.upstream import Upstream

_NO_TEXT: Final = ("number", "integer", "boolean", "array", "object", "null")
_MAX_STEPS: Final = 20
"""How many references and lists inside lists are followed in a schema, which can go round."""


async def checked(rules: Rules, options: ProxyOptions) -> int:
    """Compare rules with the tools of a server, and print what is wrong; return the exit code.

    Raises `ForPeople` if the server cannot be asked.
    """
    tools = await _listed(options)
    errors, warnings = [*problems(rules, tools)], [*doubts(rules, tools)]
    for kind, found in (("Error", errors), ("Warning", warnings)):
        for words in found:
            print(one_line(f"{kind}: {words}{'' if words.endswith(('?', '.')) else '.'}"))
    if not errors:
        fits = "The rules fit the server's tools." if rules.rules else "The file has no rules."
        print(fits, file=sys.stderr)
    return 1 if errors else 0


async def _listed(options: ProxyOptions) -> list[Tool]:
    """Return the tools that the server lists, in the older revision or else in the newer one."""
    failure: Exception | None = None
    for revision in (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION):
        declared = Declared(revision, {}, {"name": NAME, "version": __version__})
        async with anyio.create_task_group() as group:
            session = Session(options, declared, group)
            try:
                lister = _Lister(await session.upstream(), declared)
                listed = await read_list(lister, _warn)
                failure = listed.failure
            except MCPError as error:
                failure = error
            await session.close()
            group.cancel_scope.cancel()
        if failure is None:
            return [*listed.tools.values()]
    raise ForPeople(f"The tools of the server cannot be read: {one_line(str(failure))}")


def _warn(problem: str) -> None:
    print(one_line(f"Warning: {problem}."))


class _Lister:
    """A connected server, as `read_list` asks it."""

    def __init__(self, upstream: Upstream, declared: Declared) -> None:
        self.protocol_version = upstream.revision
        self._upstream, self._declared = upstream, declared

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Json:
        params = {} if cursor is None else {"cursor": cursor}
        return await self._upstream.request("tools/list", params, self._declared)


def problems(rules: Rules, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a sentence for each rule that cannot work with the tools that a server lists."""
    names = {tool.name: tool for tool in tools}
    for index, rule in enumerate(rules.rules):
        place = f"rule {rule.number}"
        concerned = [tool for tool in tools if fnmatchcase(tool.name, rule.after)]
        if not concerned:
            yield f"{place}: after: {_unlisted(rule.after, names)}"
        for pattern in rule.allow or [str(rule.then)]:
            found = rule.allow and any(fnmatchcase(name, pattern) for name in names)
            if not found and pattern not in names:
                yield f"{place}: then: {_unlisted(pattern, names)}"
        if not rule.allow and rule.then in names:
            for problem in _argument_problems(rule, names[str(rule.then)]):
                yield f"{place}: {problem}"
        for expression in rule.expressions():
            misfits = [_misfit(_path(expression), tool, rule.on) for tool in concerned]
            if misfits and all(misfits):
                yield f"{place}: {misfits[0]}"
        for earlier in rules.rules[:index]:
            wide = concerned and all(fnmatchcase(one.name, earlier.after) for one in concerned)
            always = not earlier.when and not earlier.allow
            if wide and always and earlier.on in ("any", rule.on):
                yield f"{place} can never match: rule {earlier.number} always matches before it"


def doubts(rules: Rules, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a sentence about each part of the rules that is perhaps not meant."""
    names = [tool.name for tool in tools]
    after = {name: [r for r in rules.rules if fnmatchcase(name, r.after)] for name in names}
    try:
        TopologicalSorter({name: _reached(after[name], names) for name in names}).prepare()
    except CycleError as error:
        path = " -> ".join(reversed(error.args[1]))
        yield f"a cycle, which ends only at a chain's limit: {path}"
    for index, rule in enumerate(rules.rules):
        for guard in rules.rules[:index]:
            both = any(guard in found and rule in found for found in after.values())
            kinds = "any" in (guard.on, rule.on) or guard.on == rule.on
            closed = isinstance(guard.when, str) and guard.when.lstrip().startswith("!")
            if both and kinds and guard.when and not rule.when and not closed:
                yield (
                    f"rule {rule.number} has no condition, so it follows where the condition of "
                    f"rule {guard.number} is not met, also for a missing value"
                )


def _path(expression: Expression) -> str:
    return expression if isinstance(expression, str) else str(expression["in"])


def _reached(rules: Sequence[Rule], names: Sequence[str]) -> set[str]:
    """Return the tools that these rules can call."""
    patterns = [pattern for rule in rules for pattern in rule.allow]
    reached = {str(rule.then) for rule in rules if not rule.allow}
    return {n for n in names if n in reached or any(fnmatchcase(n, each) for each in patterns)}


def _misfit(expression: str, tool: Tool, on: str) -> str | None:
    """Say which member an expression asks for that a tool's schemas do not have."""
    # An error's result need not match the output schema.
    output = tool.wire.get("outputSchema") if on == "success" else None
    seen = {
        "arguments": _shape_of(tool.input_schema, tool.input_schema),
        "structuredContent": _shape_of(output, output),
    }
    try:
        parsed(expression, {**ROOT, **seen})
    except ExpressionError as error:
        return f"{quoted(expression)} does not fit {tool.name}: {error}"
    return None


class _Members(Mapping[str, Shape]):
    """The members of an object whose schema lists them all. A schema may contain itself, so each
    member is read when it is asked for."""

    def __init__(self, declared: Mapping[str, Any], whole: Any) -> None:
        self._declared, self._whole = declared, whole

    def __getitem__(self, name: str) -> Shape:
        return _shape_of(self._declared[name], self._whole)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


def _shape_of(schema: Any, whole: Any, depth: int = 0) -> Shape:
    """Return what a schema, a part of `whole`, says of a value; None if it allows more."""
    schema = _resolved(schema, whole)
    if not isinstance(schema, dict) or depth == _MAX_STEPS:
        return None
    kind, declared = schema.get("type"), schema.get("properties")
    if isinstance(declared, dict):
        return _Members(declared, whole) if lists_all(schema) else None
    if kind == "array":
        return (_shape_of(schema.get("items"), whole, depth + 1),)
    return NO_MEMBERS if kind in ("string", "number", "integer", "boolean") else None


def _resolved(schema: Any, whole: Any) -> Any:
    """Return the schema that a reference or an alternative to null stands for."""
    for _ in range(_MAX_STEPS):
        if not isinstance(schema, dict) or "properties" in schema:
            return schema
        reference, any_of = schema.get("$ref"), schema.get("anyOf")
        others = [s for s in any_of if s != {"type": "null"}] if isinstance(any_of, list) else []
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = whole
            for name in reference[2:].split("/"):
                schema = schema.get(name) if isinstance(schema, dict) else None
        elif len(others) == 1:
            schema = others[0]
        else:
            return schema
    return None


def _unlisted(name: str, names: Sequence[str] | dict[str, Tool]) -> str:
    near = get_close_matches(name, [*names], n=1)
    hint = f". Did you mean {in_quotes(near[0])}?" if near else ""
    return f"the server lists no tool {in_quotes(name)}{hint}"


def _argument_problems(rule: Rule, tool: Tool) -> Iterator[str]:
    schema = tool.input_schema
    misnamed = [*_misnamed(rule.arguments, schema, "arguments", tool.name)]
    yield from misnamed
    if isinstance(schema, dict) and not misnamed and form_of(rule.arguments) is None:
        literals = {name: part for name, part in rule.arguments.items() if is_literal(part)}
        problem = ArgumentCheck().problem(tool.name, {**schema, "required": []}, literals)
        yield from [problem] if problem is not None else []


def _misnamed(template: Any, schema: Any, place: str, tool: str) -> Iterator[str]:
    """Compare the names in a part of the arguments with its schema."""
    form = form_of(template, is_whole=place == "arguments")
    if form in ("match", "text") and member(schema, "type") in _NO_TEXT:
        yield f"{place}: {tool} wants {schema['type']}, and {form} gives a text"
    if not isinstance(schema, dict) or form is not None:
        return
    for part in template if isinstance(template, list) else ():
        yield from _misnamed(part, schema.get("items"), place, tool)
    declared, needed = schema.get("properties"), schema.get("required")
    if not isinstance(template, dict) or not isinstance(declared, dict):
        return
    for name, part in template.items():
        if name in declared:
            yield from _misnamed(part, declared[name], f"{place}.{name}", tool)
        elif problem := unknown_member(name, schema, f"{place}.{name}", tool):
            yield problem
    for name in needed if isinstance(needed, list) else []:
        if name not in template:
            yield f"{place}.{name} is missing: {tool} needs it"
