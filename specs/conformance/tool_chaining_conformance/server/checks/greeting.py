"""Checks of the server's messages before any tool is called."""

from collections.abc import Sequence

from tool_chaining_conformance.names import IDENTIFIER, META_KEY
from tool_chaining_conformance.report.judgement import Finding, NotApplicable
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import Greeting, OtherResult
from tool_chaining_conformance.specification import schema_of
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote


@check("tool-chaining-server-advertises", on=Greeting)
def advertises(greeting: Greeting) -> Finding:
    """The server's capabilities have the extension, on 2025-11-25 in one of two places."""
    either = " or capabilities.experimental" if greeting.era is Era.LEGACY else ""
    return Finding(
        bool(greeting.settings),
        expected=f"{IDENTIFIER} in capabilities.extensions{either}",
        seen=f"capabilities {quote(greeting.capabilities)}",
    )


@check(
    "tool-chaining-server-settings-valid",
    on=Greeting,
    unseen=NotApplicable("the server advertises no settings"),
)
def settings_valid(greeting: Greeting) -> Sequence[Finding]:
    """The advertised settings meet their schema in each place."""
    return [
        Finding(
            schema_of("settings").is_valid(settings),
            expected="a settings object whose version, if there is one, "
            "is an integer of at least 1",
            seen=quote(settings),
        )
        for settings in greeting.settings
    ]


@check("tool-chaining-server-no-directive-on-other-methods", on=OtherResult)
def no_directive_on_other_methods(result: OtherResult) -> Finding:
    """Only results of `tools/call` carry directives."""
    return Finding(
        not result.carries_directive,
        expected=f"no _meta.{META_KEY} on results other than that of tools/call",
        seen=f"{'one' if result.carries_directive else 'none'} on a result of {result.method}",
    )
