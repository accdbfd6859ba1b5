"""`--rules FILE --check`: what is wrong with rules for a server, without calling a tool."""

import re
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tool_chaining import Tool
from tool_chaining.arguments import ArgumentCheck
from tool_chaining.errors import ForPeople
from tool_chaining.expressions import Expression
from tool_chaining.operator import show
from tool_chaining.rules import Rule, Rules, form_of, is_literal
from tool_chaining.text import one_line, quoted
from tool_chaining.tools import read_list
from tool_chaining_proxy import NAME, __version__
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.session import Session
from tool_chaining_proxy.upstream import Upstream

_PATH: Final = re.compile(r"(?<![\w.'])(arguments|structuredContent)((?:\.\w+|\[[\d*]*\])+)")
_PART: Final = re.compile(r"\.(\w+)|(\[)")
_OTHERS: Final = {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"}


async def checked(rules: Rules, options: ProxyOptions) -> int:
    """Compare rules with the tools of a server, and print what is wrong; return the exit code.

    Raises `ForPeople` if the server cannot be asked.
    """
    tools = await _listed(options)
    errors, warnings = [*problems(rules, tools)], [*doubts(rules, tools)]
    for kind, found in (("Error", errors), ("Warning", warnings)):
        for words in found:
            show(f"{kind}: {words}{'' if words.endswith(('?', '.')) else '.'}")
    if not errors:
        print("The rules fit the server's tools.", file=sys.stderr)
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
                listed = await read_list(lister, lambda problem: show(f"Warning: {problem}."))
                failure = listed.failure
            except MCPError as error:
                failure = error
            await session.close()
            group.cancel_scope.cancel()
        if failure is None:
            return [*listed.tools.values()]
    raise ForPeople(f"The tools of the server cannot be read: {one_line(str(failure))}")


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
            unknown = [[*_unknown_members(_path(expression), tool)] for tool in concerned]
            if unknown and all(unknown):
                yield f"{place}: {unknown[0][0]}"
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


def _unknown_members(expression: str, tool: Tool) -> Iterator[str]:
    """Yield a sentence for each path in an expression that a tool's schemas do not have."""
    schemas = {"arguments": tool.input_schema, "structuredContent": tool.wire.get("outputSchema")}
    for root, path in _PATH.findall(expression):
        schema, place = schemas[root], root
        for name, index in _PART.findall(path):
            if index:
                schema = schema.get("items") if isinstance(schema, dict) else None
            elif problem := _unknown(name, schema, f"{place}.{name}", tool.name):
                yield problem
                break
            else:
                declared = schema.get("properties") if isinstance(schema, dict) else None
                schema = declared.get(name) if isinstance(declared, dict) else None
                place = f"{place}.{name}"


def _unknown(name: str, schema: Any, place: str, tool: str) -> str | None:
    """Say that an object has no such member, if its schema lists all members."""
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(declared, dict) or name in declared:
        return None
    if _OTHERS & schema.keys() or schema.get("additionalProperties", False) is not False:
        return None
    near = get_close_matches(name, declared, n=1)
    return f"{place}: {tool} does not know it.{f' Did you mean {near[0]}?' if near else ''}"


def _unlisted(name: str, names: Sequence[str] | dict[str, Tool]) -> str:
    near = get_close_matches(name, [*names], n=1)
    hint = f". Did you mean {quoted(near[0])}?" if near else ""
    return f"the server lists no tool {quoted(name)}{hint}"


def _argument_problems(rule: Rule, tool: Tool) -> Iterator[str]:
    schema = tool.input_schema
    misnamed = [*_misnamed(rule.arguments, schema, "arguments", tool.name)]
    yield from misnamed
    if isinstance(schema, dict) and not misnamed and form_of(rule.arguments) is None:
        literals = {name: part for name, part in rule.arguments.items() if is_literal(part)}
        problem = ArgumentCheck().problem(tool.name, {**schema, "required": []}, literals)
        yield from [problem] if problem is not None else []


def _misnamed(template: Any, schema: Any, place: str, tool: str) -> Iterator[str]:
    """Compare the names in a part of the arguments with its schema. An expression fits any."""
    if not isinstance(schema, dict) or form_of(template, is_whole=place == "arguments") is not None:
        return
    for part in template if isinstance(template, list) else ():
        yield from _misnamed(part, schema.get("items"), place, tool)
    declared, needed = schema.get("properties"), schema.get("required")
    if not isinstance(template, dict) or not isinstance(declared, dict):
        return
    for name, part in template.items():
        if name in declared:
            yield from _misnamed(part, declared[name], f"{place}.{name}", tool)
        elif problem := _unknown(name, schema, f"{place}.{name}", tool):
            yield problem
    for name in needed if isinstance(needed, list) else []:
        if name not in template:
            yield f"{place}.{name} is missing: {tool} needs it"
