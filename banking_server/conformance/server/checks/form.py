"""What a directive looks like, and where it may stand."""

from banking_server.chaining.directive import META_KEY
from banking_server.conformance.report.judgement import Finding
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import InterimResult, ResultWithDirective
from banking_server.conformance.values import shown


@check("tool-chaining-server-directive-well-formed", on=ResultWithDirective)
def directive_well_formed(result: ResultWithDirective) -> Finding:
    """A directive is an object, and so are its arguments."""
    return Finding(
        result.directive.arguments is not None,
        expected="an object, with an object for `arguments` if it has that member",
        seen=_shown(result),
    )


@check("tool-chaining-server-directive-names-tool", on=ResultWithDirective)
def directive_names_tool(result: ResultWithDirective) -> Finding | None:
    """A directive names a tool."""
    if not isinstance(result.directive.value, dict):
        return None
    return Finding(
        result.directive.tool is not None,
        expected="a member `tool` that is a non-empty string",
        seen=_shown(result),
    )


@check("tool-chaining-server-no-name-alias", on=ResultWithDirective)
def no_name_alias(result: ResultWithDirective) -> Finding | None:
    """A directive does not use the deprecated alias of `tool`."""
    value = result.directive.value
    if not isinstance(value, dict):
        return None
    return Finding("name" not in value, expected="no member `name`", seen=_shown(result))


@check("tool-chaining-server-no-unknown-members", on=ResultWithDirective)
def no_unknown_members(result: ResultWithDirective) -> Finding | None:
    """A directive has no members that the specification does not know."""
    value = result.directive.value
    if not isinstance(value, dict):
        return None
    unknown = sorted(value.keys() - {"tool", "arguments", "name"})
    return Finding(
        not unknown,
        expected="no members besides `tool` and `arguments`",
        seen=f"also {', '.join(unknown)}" if unknown else _shown(result),
    )


@check("tool-chaining-server-no-directive-on-interim-result", on=InterimResult)
def no_directive_on_interim_result(result: InterimResult) -> Finding:
    """A tool that asks for input has not ended, so it names no next tool."""
    return Finding(
        result.directive is None,
        expected=f"no _meta.{META_KEY} on a result with resultType input_required",
        seen="none" if result.directive is None else "one",
    )


def _shown(result: ResultWithDirective) -> str:
    return f"{META_KEY}: {shown(result.directive.value)}"
