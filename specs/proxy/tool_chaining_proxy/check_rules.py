"""`--rules FILE --check` and `--try`: what a file of rules would do, without calling a tool."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import anyio
from mcp import MCPError
from mcp.types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tool_chaining import Step, Tool
from tool_chaining.arguments import ArgumentCheck
from tool_chaining.directive import Malformed
from tool_chaining.errors import ForPeople
from tool_chaining.rules import Rule, Rules, form_of, is_literal
from tool_chaining.text import one_line, quoted
from tool_chaining.tools import read_list
from tool_chaining_proxy import NAME, __version__
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.link import Link
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.upstream import Upstream


async def checked(rules: Rules, options: ProxyOptions) -> int:
    """Compare rules with the tools of a server, and print what they do; return the exit code.

    Raises `ForPeople` if the server cannot be asked.
    """
    tools = await _listed(options)
    errors = [*problems(rules, tools)]
    for problem in errors:
        print(f"Error: {problem}{'' if problem.endswith(('?', '.')) else '.'}")
    if path := circle(rules, tools):
        print(f"Warning: a cycle, which ends only at a chain's limit: {' -> '.join(path)}.")
    if not errors:
        print("The rules fit the server's tools.", file=sys.stderr)
    print(flowchart(rules))
    return 1 if errors else 0


async def _listed(options: ProxyOptions) -> list[Tool]:
    """Return the tools that the server lists, in the older revision or else in the newer one."""
    failure: Exception | None = None
    for revision in (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION):
        declared = Declared(revision, {}, {"name": NAME, "version": __version__})
        async with anyio.create_task_group() as group:
            link = Link(options, declared, group)
            try:
                lister = _Lister(await link.upstream(), declared)
                listed = await read_list(lister, lambda problem: print(f"Warning: {problem}."))
                failure = listed.failure
            except MCPError as error:
                failure = error
            await link.close()
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
        if not any(fnmatchcase(name, rule.after) for name in names):
            yield f"{place}: after: {_unlisted(rule.after, names)}"
        for pattern in rule.allow or [rule.then]:
            found = rule.allow and any(fnmatchcase(name, pattern) for name in names)
            if not found and pattern not in names:
                yield f"{place}: then: {_unlisted(pattern, names)}"
        if not rule.allow and rule.then in names:
            for problem in _argument_problems(rule, names[rule.then]):
                yield f"{place}: {problem}"
        for earlier in rules.rules[:index]:
            if _covers(earlier, rule, names):
                yield f"{place} can never match: rule {earlier.number} always matches before it"


def circle(rules: Rules, tools: Sequence[Tool]) -> list[str] | None:
    """Return a cycle of tools under these rules; None if there is none."""
    names = [tool.name for tool in tools]
    after = {
        name: {
            each
            for rule in rules.rules
            if fnmatchcase(name, rule.after)
            for each in names
            if _leads_to(rule, each)
        }
        for name in names
    }
    done: set[str] = set()

    def walk(path: list[str]) -> list[str] | None:
        for name in sorted(after[path[-1]] - done):
            if name in path:
                return [*path[path.index(name) :], name]
            if found := walk([*path, name]):
                return found
        done.add(path[-1])
        return None

    return next(filter(None, (walk([name]) for name in names)), None)


def flowchart(rules: Rules) -> str:
    """Return the rules as a Mermaid flowchart: an arrow from each `after` to each `then`."""
    lines = ["flowchart LR"]
    nodes: dict[str, str] = {}
    for rule in rules.rules:
        for name in (rule.after, *(rule.allow or [rule.then])):
            if name not in nodes:
                nodes[name] = f"t{len(nodes)}"
                lines.append(f"  {nodes[name]}[{_label(name)}]")
        how = [] if rule.on == "success" else [f"on {rule.on}"]
        label = ", ".join([f"rule {rule.number}", *how, *([rule.when] if rule.when else [])])
        arrow = "-->" if rule.ask else "==>"
        lines += [
            f"  {nodes[rule.after]} {arrow}|{_label(label)}| {nodes[name]}"
            for name in rule.allow or [rule.then]
        ]
    return "\n".join(lines)


def tried(rules: Rules, path: Path) -> str:
    """Return in a sentence which call would follow the result in a file. Raises `ForPeople`.

    The file has an object with `tool`, `arguments` and the members of the result, or what
    `banking-server call --json` prints.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        written = found.get("steps", [found])
        steps = [
            Step(level, one["tool"], one.get("arguments") or {}, one.get("result", one))
            for level, one in enumerate(written, 1)
        ]
        said: list[str] = []
        match = rules.next(steps, said.append)
    except OSError as error:
        raise ForPeople(f"Cannot read {str(path)!r}: {(error.strerror or '').lower()}.") from None
    except (ValueError, AttributeError, KeyError, TypeError, IndexError):
        form = '{"tool": …, "arguments": {…}, "content": […], "structuredContent": {…}}'
        raise ForPeople(f"{str(path)!r} must be a JSON object such as {form}.") from None
    if match is None:
        return "\n".join([*said, "No rule matches. Nothing would be called."])
    if isinstance(match.reading, Malformed) or match.unfilled:
        problem = match.unfilled or getattr(match.reading, "reason", "")
        return "\n".join([*said, f"{problem}. Nothing would be called."])
    directive = match.reading.directive
    call = f"{quoted(directive.tool)} with {quoted(directive.arguments)}"
    asked = "The person would be asked." if match.rule.ask else "Nobody would be asked."
    return "\n".join([*said, f"Rule {match.rule.number} matches. It would call {call}. {asked}"])


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
    if not isinstance(schema, dict) or form_of(template) is not None:
        return
    for part in template if isinstance(template, list) else ():
        yield from _misnamed(part, schema.get("items"), place, tool)
    declared, needed = schema.get("properties"), schema.get("required")
    if not isinstance(template, dict) or not isinstance(declared, dict):
        return
    others = {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"} & schema.keys()
    for name, part in template.items():
        if name in declared:
            yield from _misnamed(part, declared[name], f"{place}.{name}", tool)
        elif not others and schema.get("additionalProperties", False) is False:
            near = get_close_matches(name, declared, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            yield f"{place}.{name}: {tool} does not know it.{hint}"
    for name in needed if isinstance(needed, list) else []:
        if name not in template:
            yield f"{place}.{name} is missing: {tool} needs it"


def _covers(earlier: Rule, later: Rule, names: Iterable[str]) -> bool:
    """Return whether an earlier rule matches whatever a later one does."""
    concerned = [name for name in names if fnmatchcase(name, later.after)]
    wide = bool(concerned) and all(fnmatchcase(name, earlier.after) for name in concerned)
    return wide and earlier.on in ("any", later.on) and not earlier.when and not earlier.allow


def _leads_to(rule: Rule, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in rule.allow) or name == rule.then


def _label(text: str) -> str:
    shown = one_line(text, 60).replace("&", "&amp;").replace('"', "&quot;")
    return f'"{shown.replace("<", "&lt;").replace(">", "&gt;")}"'
