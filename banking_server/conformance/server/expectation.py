"""Whether a call brought what the scenario expects of it."""

from collections.abc import Mapping
from typing import Any

from banking_server.conformance.server.reading import directive_of, ending, is_error, is_refused
from banking_server.conformance.server.references import filled
from banking_server.conformance.server.scenario import AnyCall, Step, StepExpectation
from banking_server.conformance.target.connection import ToolCall
from banking_server.conformance.values import same, shown


def unmet(part: AnyCall, call: ToolCall, values: Mapping[str, Any]) -> str | None:
    """Say what the scenario expected of a call and did not get; None if it got everything."""
    if (fault := _unmet(part.expect, call, values)) is not None:
        return fault
    if isinstance(part, Step):
        missed = part.refused and not is_refused(call)
        return f"expected a refusal, saw {ending(call)}" if missed else None
    failed = is_refused(call) or call.final.kind != "complete"
    if failed and directive_of(call.final) is None and part.expect.is_error is None:
        return f"a follow-up call that did not succeed shows no chain: {ending(call)}"
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
                    f"expected the directive's argument {name!r} to be {shown(value)}, "
                    f"saw {shown(seen.value)}"
                )
    return None
