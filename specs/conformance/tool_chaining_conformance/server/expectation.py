"""Compares a call's result with the scenario, and collects what may explain a difference."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.server.reading import (
    content_of,
    directive_of,
    ending,
    is_error,
    is_refused,
)
from tool_chaining_conformance.server.references import filled
from tool_chaining_conformance.server.scenario import AnyCall, Step, StepExpectation
from tool_chaining_conformance.target.connection import ToolCall
from tool_chaining_conformance.text import cut, one_line
from tool_chaining_conformance.values import quote, same

TEXT: Final = 400
"""The most characters of a result, or of one line of standard error, in a message."""

LINES: Final = 8
"""The last lines of standard error that a message shows: the end of a traceback."""


def unmet(part: AnyCall, call: ToolCall, values: Mapping[str, Any]) -> str | None:
    """Return how a call differs from what the scenario expects, or None if it does not."""
    if (fault := _unmet(part.expect, call, values)) is not None:
        return fault
    if isinstance(part, Step):
        missed = part.refused and not is_refused(call)
        return f"expected a refusal, saw {ending(call)}" if missed else None
    failed = is_refused(call) or call.final.kind != "complete"
    if failed and directive_of(call.final) is None and part.expect.is_error is None:
        return f"the follow-up call failed, so there is no chain to judge: {ending(call)}"
    return None


def _unmet(expect: StepExpectation, call: ToolCall, values: Mapping[str, Any]) -> str | None:
    seen = directive_of(call.final)
    wanted = expect.next_tool
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else wanted
        if ("none" if seen is None else seen.tool) not in names:
            return f"expected nextTool {' or '.join(names)}, saw {ending(call)}"
    if expect.is_error is not None and (
        call.final.error is not None or is_error(call) != expect.is_error
    ):
        return f"expected isError {str(expect.is_error).lower()}, saw {ending(call)}"
    if expect.arguments is not None and seen is not None:
        arguments = seen.arguments or {}
        for name, value in filled(expect.arguments, values).items():
            if name not in arguments or not same(arguments[name], value):
                return (
                    f"expected the directive's argument {name!r} to be {quote(value)}, "
                    f"saw {quote(seen.value)}"
                )
    return None


def explained(
    fault: str, call: ToolCall, listed: Iterable[str], errors: str, redaction: Redaction
) -> str:
    """Return `fault`, followed by the result, whether the tool is listed, and standard error.

    `listed` are the names in the server's list of tools. `errors` is its standard error during the
    call. `redaction` removes the secrets before texts are cut.
    """
    names = sorted(listed)
    lines = [fault]
    texts = [item.get("text") for item in content_of(call.final)]
    if text := " ".join(text for text in texts if isinstance(text, str)):
        lines.append(f"text of the result: {cut(one_line(redaction.text(text)), TEXT)}")
    if names and call.tool not in names:
        near = get_close_matches(call.tool, names, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(names)}"
        lines.append(f"the list of tools has no {call.tool!r}; {cut(known, TEXT)}")
    written = [line for line in redaction.text(errors).splitlines() if line.strip()]
    if written:
        lines.append("the server wrote to standard error:")
        lines += [cut(line, TEXT) for line in written[-LINES:]]
    return "\n".join(lines)
