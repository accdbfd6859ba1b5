"""Makes a first scenario file from a server's list of tools. It calls no tool."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.connection import Connection, Profile, connect
from tool_chaining_conformance.target.era import Era, in_each_era
from tool_chaining_conformance.text import cut, one_line

HEAD: Final = """\
# A first scenario, made from the server's tools/list. No tool was called.
#
# Arguments are placeholders: replace them by arguments that lead to a directive. The suite
# makes a step if its lines are not comments; at first only one step is active.
name: {name}
description: {description}
#
# If callers sign in, or one must be refused: specs/conformance/README.md, `Server scenarios`.
steps:
"""

STEP: Final = """\
  # {about}: {changes}, as far as the server says.
{mark}  - id: {id}
{mark}    call: {call}
{mark}    arguments: {arguments}
#    expect: {{nextTool: THE_TOOL_OF_THE_DIRECTIVE}}
#    repeatable: true  # if the same call may be made about forty times
#    follow: true      # if the tool of the directive may be called, and those after it
"""

PLACEHOLDERS: Final[Json] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
"""A value of each type; other types get a text."""


def draft(target: Target) -> str:
    """Return the text of a scenario file for the server at `target`. Raises TargetFailure."""
    connection = _connected(target)
    try:
        tools = list(connection.list_tools().tools.values())
        name = connection.server_info.get("name")
    finally:
        connection.close()
    if not tools:
        raise TargetFailure("the server lists no tools, so there is nothing to call")
    label = _short(name) or "a server"
    head = HEAD.format(
        name=_yaml(_kebab(name) or "first"), description=_yaml(f"The chains of {label}.")
    )
    return head + "".join(_steps(tools))


def _connected(target: Target) -> Connection:
    failures: dict[Era, str] = {}
    for era in Era:
        try:
            return connect(target, era, Profile())
        except TargetFailure as failure:
            failures[era] = str(failure)
    raise TargetFailure(in_each_era(failures))


def _steps(tools: Sequence[Json]) -> Iterator[str]:
    """Yield a step for each tool. The first one is active: that begins a chain, not that ends it.

    A later tool of a chain is often named in the description of another one.
    """
    texts = [str(tool.get("description")) for tool in tools]
    named = [any(str(tool.get("name")) in text for text in texts) for tool in tools]
    first = tools[named.index(False)] if False in named else tools[0]
    for tool in [first, *(tool for tool in tools if tool is not first)]:
        step_id = _kebab(tool.get("name")) or "step"
        yield STEP.format(
            about=_short(tool.get("title") or tool.get("description")).rstrip(".") or step_id,
            changes="reads only" if _reads_only(tool) else "may change something",
            mark="" if tool is first else "#",
            id=_yaml(step_id),
            call=_yaml(str(tool.get("name"))),
            arguments=_yaml(placeholders(tool)),
        )


def placeholders(tool: Json) -> Json:
    """Return a value of its type for each argument that a tool requires."""
    schema = within(tool, "inputSchema")
    required, known = schema.get("required"), within(schema, "properties")
    return {
        name: PLACEHOLDERS.get(str(within(known, name).get("type")), "TEXT")
        for name in (required if isinstance(required, list) else [])
    }


def _reads_only(tool: Json) -> bool:
    return within(tool, "annotations").get("readOnlyHint") is True


def _kebab(name: object) -> str:
    text = name if isinstance(name, str) else ""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _short(text: object) -> str:
    """Return the first words of a text for a comment."""
    return cut(one_line(text), 60) if isinstance(text, str) else ""


def _yaml(value: Any) -> str:
    """Return a value as JSON, which is also YAML; simple names have no quotation marks."""
    text = as_json(value)
    plain = isinstance(value, str) and re.fullmatch("[a-z][a-z0-9_-]{5,}", value)
    return text[1:-1] if plain else text
