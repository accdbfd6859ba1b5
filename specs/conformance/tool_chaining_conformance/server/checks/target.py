"""Checks of the call that a directive asks for: its tool and its arguments."""

import re
from typing import Final

from tool_chaining_conformance.message import Json, within
from tool_chaining_conformance.report.judgement import Finding, Untestable
from tool_chaining_conformance.server.bounded import CannotTell, first_fault
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import NO_INTERMEDIARY, ResultWithDirective
from tool_chaining_conformance.server.reading import SeenDirective, is_marked, objects_within
from tool_chaining_conformance.values import quote, same


@check("tool-chaining-server-names-listed-tool", on=ResultWithDirective)
def names_listed_tool(result: ResultWithDirective) -> Finding | None:
    """The server lists the tool for this caller right afterwards, visible to the model."""
    listed = _is_listed(result)
    if result.target is None or not hidden_from_model(result.target):
        return listed
    visibility = within(result.target, "_meta", "ui").get(VISIBILITY)
    return Finding(
        False,
        expected="a tool whose _meta.ui.visibility, if present, includes model",
        seen=f"{result.directive.tool} with visibility {quote(visibility)}",
    )


@check("tool-chaining-server-intermediary-renames", on=ResultWithDirective, unseen=NO_INTERMEDIARY)
def intermediary_renames(result: ResultWithDirective) -> Finding | None:
    """The directive and the words of an intermediary name the tool as in its own list."""
    tool, listed = result.directive.tool, _is_listed(result) if result.intermediary else None
    if listed is None or not listed.holds:
        return listed
    step = result.structured.get("nextStep")
    other = [
        *(
            quote(item.get("text"))
            for item in result.content
            if _names_another(item, result.directive)
        ),
        *(
            [f"nextStep {quote(step)}"]
            if isinstance(step, dict) and step.get("tool") != tool
            else []
        ),
    ]
    return Finding(
        not other,
        expected=f"words that name {tool}, or no words",
        seen=", ".join(other) or "no other words",
    )


def _names_another(item: Json, seen: SeenDirective) -> bool:
    """Whether a marked item has the arguments of a directive, and not the name of its tool."""
    text = str(item.get("text"))
    named = re.search(rf"(?<![\w.-]){re.escape(str(seen.tool))}(?![\w-])", text)
    repeats = any(same(found, seen.arguments) for found in objects_within(text))
    return is_marked(item) and repeats and named is None


def _is_listed(result: ResultWithDirective) -> Finding | None:
    if result.directive.tool is None:
        return None
    client = "a client that declared" if result.declared else "one that did not declare"
    named = ", ".join(result.listed[:NAMES]) + (", …" if len(result.listed) > NAMES else "")
    return Finding(
        result.target is not None,
        expected=f"a tool of tools/list, which was read right afterwards as {client}: {named}",
        seen=result.directive.tool,
    )


NAMES: Final = 30
"""The most names of a list that a message shows."""


VISIBILITY: Final = "visibility"


def hidden_from_model(tool: Json) -> bool:
    """Return whether a tool of `tools/list` has a visibility that lacks `"model"`.

    The text `"model"` counts as a list of one. Any other value that is not a list lacks it.
    """
    ui = within(tool, "_meta", "ui")
    if VISIBILITY not in ui:
        return False
    match ui[VISIBILITY]:
        case list() as audiences:
            return not any(audience == "model" for audience in audiences)
        case audience:
            return bool(audience != "model")


@check("tool-chaining-server-arguments-valid", on=ResultWithDirective)
def arguments_valid(result: ResultWithDirective) -> Finding | Untestable | None:
    """The arguments meet the tool's input schema."""
    schema, arguments = (result.target or {}).get("inputSchema"), result.directive.arguments
    if not isinstance(schema, dict) or arguments is None:
        return None
    try:
        fault = first_fault(schema, arguments)
    except CannotTell as unknown:
        return Untestable(
            f"the suite's validator (jsonschema-rs) cannot tell whether the arguments for "
            f"{result.directive.tool} are valid: {unknown}"
        )
    return Finding(
        fault is None,
        expected="arguments that are complete and valid against the input schema of "
        f"{result.directive.tool}",
        seen=fault or "valid arguments",
        advice=result.directive.misspelt,
    )
