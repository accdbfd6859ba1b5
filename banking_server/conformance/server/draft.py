"""A first scenario file for a server, made from its list of tools without calling any."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from banking_server.conformance.message import Json
from banking_server.conformance.target.channel import Target, TargetFailure
from banking_server.conformance.target.connection import Connection, Profile, connect
from banking_server.conformance.target.era import Era
from banking_server.text import one_line

DEEPEST: Final = 5
"""Levels of a schema for which a placeholder is made."""

MOST: Final = 10
"""Items or characters of a placeholder."""


def draft(target: Target) -> str:
    """Return the text of a scenario file for the server at `target`. Raises TargetFailure."""
    connection = _connected(target)
    try:
        tools = list(connection.list_tools().tools.values())
        info = connection.server_info
    finally:
        connection.close()
    if not tools:
        raise TargetFailure("the server lists no tools, so there is nothing to call")
    return "\n".join(_lines(info, tools)) + "\n"


def _connected(target: Target) -> Connection:
    failures: list[str] = []
    for era in Era:
        try:
            return connect(target, era, Profile())
        except TargetFailure as failure:
            failures.append(f"{era}: {failure}")
    raise TargetFailure("; ".join(failures))


def _lines(info: Json, tools: Sequence[Json]) -> Iterator[str]:
    name = _kebab(info.get("name")) or "first"
    shown = _one_line(info.get("name")) or "a server"
    yield f"# A first scenario for {shown}, made from its tools/list. No tool was called."
    yield "#"
    yield "# Arguments are placeholders: write those that lead to a directive. A step is made when"
    yield "# the marks before its lines are gone; at first only one is. --dry-run shows every call."
    yield f"name: {_flow(name)}"
    yield f"description: {_flow(f'The chains of {shown}.')}"
    yield "#"
    yield "# If callers sign in: credentials come from the environment, and no report shows them."
    yield "# values:"
    yield "#   password: {environment: PASSWORD}"
    yield "# setup:"
    yield "#   - id: sign-in"
    yield "#     call: a_tool"
    yield '#     arguments: {password: "${password}"}'
    yield "#     capture:"
    yield "#       session: {pointer: /structuredContent/session, secret: true}"
    yield "#"
    yield "# What goes with every request, in its _meta:"
    yield '# meta: {session: "${session}"}'
    yield "#"
    yield "# Somebody who has not signed in, for a step with `caller: stranger`, `repeatable: true`"
    yield "# and `refused: true` that makes a call which succeeded before:"
    yield "# callers:"
    yield "#   stranger: {}"
    yield "steps:"
    first = next((tool for tool in tools if _hint(tool, "readOnlyHint")), tools[0])
    taken: set[str] = set()
    for tool in [first, *(tool for tool in tools if tool is not first)]:
        yield from _step(tool, taken, active=tool is first)


def _step(tool: Json, taken: set[str], *, active: bool) -> Iterator[str]:
    step_id = base = _kebab(tool.get("name")) or "step"
    while step_id in taken:
        step_id = f"{base}-{len(taken) + 1}"
    taken.add(step_id)
    said = _one_line(tool.get("title") or tool.get("description"))
    changes = "reads only" if _hint(tool, "readOnlyHint") else "may change something"
    yield f"  # {said or step_id}: {changes}, as far as the server says."
    mark = "  " if active else "  # "
    yield f"{mark}- id: {_flow(step_id)}"
    yield f"{mark}  call: {_flow(str(tool.get('name')))}"
    yield f"{mark}  arguments: {_flow(_arguments(tool))}"
    yield "  #   expect: {nextTool: THE_TOOL_OF_THE_DIRECTIVE}"
    yield "  #   repeatable: true  # if the same call may be made about thirty times"
    yield "  #   follow: true      # if the tool of the directive may be called, and those after it"


def _arguments(tool: Json) -> Json:
    arguments = placeholder(tool.get("inputSchema"))
    return arguments if isinstance(arguments, dict) else {}


def placeholder(schema: object, root: object = None, depth: int = 0) -> Any:
    """Return a value that stands for what a schema asks for; required members only."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "TEXT"
    if isinstance(schema.get("$ref"), str):
        return placeholder(_referred(schema["$ref"], root), root, depth + 1)
    for ready in ("const", "default"):
        if ready in schema:
            return schema[ready]
    for several in ("examples", "enum"):
        if isinstance(schema.get(several), list) and schema[several]:
            return schema[several][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(choice), list) and schema[choice]:
            return placeholder(schema[choice][0], root, depth + 1)
    kind = schema.get("type")
    return _of_type(kind[0] if isinstance(kind, list) and kind else kind, schema, root, depth)


def _of_type(kind: object, schema: Mapping[str, Any], root: object, depth: int) -> Any:
    match kind:
        case "integer" | "number":
            least = schema.get("minimum", 1)
            return least if isinstance(least, int | float) else 1
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            least = schema.get("minItems", 0)
            items = placeholder(schema.get("items"), root, depth + 1)
            return [items] * min(least, MOST) if isinstance(least, int) else []
        case "string":
            least = schema.get("minLength", 0)
            return "TEXT".ljust(min(least, MOST) if isinstance(least, int) else 0, "X")
    properties, required = schema.get("properties"), schema.get("required")
    members = properties if isinstance(properties, Mapping) else {}
    return {
        name: placeholder(members.get(name), root, depth + 1)
        for name in (required if isinstance(required, list) else [])
        if isinstance(name, str)
    }


def _referred(reference: str, root: object) -> object:
    value = root
    for part in reference.removeprefix("#").split("/")[1:]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _hint(tool: Json, name: str) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get(name) is True


def _kebab(name: object) -> str:
    text = name if isinstance(name, str) else ""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _one_line(text: object) -> str:
    """Return the first words of a text, as they can stand in a comment."""
    return one_line(text, 60) if isinstance(text, str) else ""


def _flow(value: Any) -> str:
    """Return a value as YAML on one line; as JSON, which is YAML, where it would break."""
    # The loader of PyYAML knows what reads as a number or as true; aliases are nothing for people.
    text: str = yaml.dump(
        value, Dumper=_Plain, default_flow_style=True, width=10**6, sort_keys=False
    )
    text = text.removesuffix("\n").removesuffix("\n...")
    text = text.removesuffix("...").rstrip()
    return text if "\n" not in text else json.dumps(value)


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write what stands in two places twice."""
        return True
