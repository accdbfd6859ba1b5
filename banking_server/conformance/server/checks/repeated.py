"""A call made again, in ways that must not change how it ends."""

from typing import Final

from banking_server.conformance.report.judgement import Finding
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import (
    RepeatedInExperimental,
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithEmptySettings,
    RepeatedWithLaterVersion,
    RepeatedWithMalformedProvenance,
    RepeatedWithMalformedSettings,
    RepeatedWithProvenance,
    RepeatedWithUnknownSettings,
    Repetition,
)
from banking_server.conformance.server.reading import content_of, ending
from banking_server.conformance.values import shown


@check("tool-chaining-server-same-input-same-directive", on=RepeatedUnchanged)
def same_input_same_directive(repetition: RepeatedUnchanged) -> Finding | None:
    """The same call names the same tool."""
    return _with_directive(repetition)


@check(
    "tool-chaining-server-emits-to-undeclared-client",
    on=(RepeatedUndeclared, RepeatedWithEmptySettings),
)
def emits_to_undeclared_client(repetition: Repetition) -> Finding | None:
    """A directive is for every client, declared or not."""
    return _with_directive(repetition)


@check("tool-chaining-server-accepts-later-version", on=RepeatedWithLaterVersion)
def accepts_later_version(repetition: RepeatedWithLaterVersion) -> Finding | None:
    """A client of a later version is served like any other."""
    return _with_directive(repetition)


@check("tool-chaining-server-ignores-unknown-settings", on=RepeatedWithUnknownSettings)
def ignores_unknown_settings(repetition: RepeatedWithUnknownSettings) -> Finding | None:
    """A client whose settings say more is served like any other."""
    return _with_directive(repetition)


@check("tool-chaining-server-malformed-settings-absent", on=RepeatedWithMalformedSettings)
def malformed_settings_absent(repetition: RepeatedWithMalformedSettings) -> Finding:
    """A client whose settings are malformed is served like one that did not declare."""
    return _alike(repetition)


@check("tool-chaining-server-reads-experimental", on=RepeatedInExperimental)
def reads_experimental(repetition: RepeatedInExperimental) -> Finding | None:
    """On 2025-11-25 a declaration counts in either place."""
    return _with_directive(repetition)


@check("tool-chaining-server-provenance-changes-nothing", on=RepeatedWithProvenance)
def provenance_changes_nothing(repetition: RepeatedWithProvenance) -> Finding:
    """What a client says of its chain has no effect."""
    return _alike(repetition)


@check("tool-chaining-server-ignores-malformed-provenance", on=RepeatedWithMalformedProvenance)
def ignores_malformed_provenance(repetition: RepeatedWithMalformedProvenance) -> Finding:
    """Malformed provenance is not an error."""
    return _alike(repetition)


def _with_directive(repetition: Repetition) -> Finding | None:
    if not repetition.has_directive and not repetition.differs:
        return None  # Two calls without a directive show nothing.
    return _alike(repetition)


PART_NAMES: Final = {
    "refusal": "whether it is an error",
    "tool": "the tool that is named",
    "arguments": "the arguments of the directive",
    "title": "the title of the directive",
    "content": "what the result says",
    "words": "whether the directive is also said in words",
}


def _alike(repetition: Repetition) -> Finding:
    first, again, differs = repetition.first, repetition.again, repetition.differs
    expected = f"{ending(first)}, and the same again, {repetition.what}"
    if not differs:
        return Finding(True, expected=expected, seen=ending(again))
    parts = ", ".join(PART_NAMES[part] for part in PART_NAMES if part in differs)
    content = "content" in differs or "words" in differs
    return Finding(
        False,
        expected=expected + (f"; content {shown(content_of(first.final))}" if content else ""),
        seen=f"every time something else in {parts}: {ending(again)}"
        + (f"; content {shown(content_of(again.final))}" if content else ""),
    )
