"""What a server advertises, the form of a directive, and the results that may have one."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from tool_chaining_conformance.names import IDENTIFIER, META_KEY
from tool_chaining_conformance.report.judgement import Finding, NotApplicable
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import (
    Greeting,
    InterimResult,
    OtherResult,
    ResultWithDirective,
)
from tool_chaining_conformance.specification import schema_of
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote

TITLE_LENGTH: Final = 200
"""The most characters of a title."""

NOT_PLAIN: Final = frozenset({"Cc", "Zl", "Zp"})
"""Categories of characters that end a line, or control a terminal."""

DIRECTIONS: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that control the direction of a text, as TC-S-27 lists them."""


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


@check("tool-chaining-server-directive-well-formed", on=ResultWithDirective)
def directive_well_formed(result: ResultWithDirective) -> Finding:
    """A directive is an object that names a tool, and its arguments are an object."""
    return Finding(
        result.directive.key is not None,
        expected="an object with a non-empty string `tool`, and with an object for `arguments` if "
        "it has that member",
        seen=f"{META_KEY}: {quote(result.directive.value)}",
        advice=result.directive.misspelt,
    )


@check("tool-chaining-server-directive-i-json", on=ResultWithDirective)
def directive_i_json(result: ResultWithDirective) -> Finding:
    """Every parser reads the same values from a directive, because it is I-JSON."""
    faults = result.directive.faults
    return Finding(
        not faults,
        expected="I-JSON, with only such numbers as RFC 8785 writes with the same value",
        seen="; ".join(faults) or "I-JSON",
    )


@check(
    "tool-chaining-server-title-plain",
    on=ResultWithDirective,
    unseen=NotApplicable("no directive has a title"),
)
def title_plain(result: ResultWithDirective) -> Finding | None:
    """The title, if there is one, is a short plain text on one line."""
    value = result.directive.value
    if not isinstance(value, dict) or "title" not in value:
        return None
    title = value["title"]
    return Finding(
        isinstance(title, str)
        and 1 <= len(title) <= TITLE_LENGTH
        and not any(
            unicodedata.category(each) in NOT_PLAIN or each in DIRECTIONS for each in title
        ),
        expected=f"a text of 1 to {TITLE_LENGTH} characters on one line, without characters that "
        "control its direction",
        seen=f"title: {quote(title)}"
        + (f", of {len(title)} characters" if isinstance(title, str) else ""),
    )


@check("tool-chaining-server-no-directive-on-interim-result", on=InterimResult)
def no_directive_on_interim_result(result: InterimResult) -> Finding:
    """An interim result (a request for input, or a task) names no next tool."""
    return Finding(
        result.directive is None,
        expected=f"no _meta.{META_KEY} on an interim result: one that asks for input, or a task",
        seen="no directive" if result.directive is None else "a directive",
    )


@check("tool-chaining-server-no-directive-on-other-methods", on=OtherResult)
def no_directive_on_other_methods(result: OtherResult) -> Finding:
    """Only results of `tools/call` carry directives."""
    return Finding(
        not result.carries_directive,
        expected=f"no _meta.{META_KEY} on results other than that of tools/call",
        seen=f"{'one' if result.carries_directive else 'none'} on a result of {result.method}",
    )
