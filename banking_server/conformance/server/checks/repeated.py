"""A call made again, in ways that must not change how it ends."""

from banking_server.conformance.report.judgement import Finding, Untestable
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import (
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithLaterSettings,
    RepeatedWithMalformedProvenance,
    RepeatedWithProvenance,
    Repetition,
)
from banking_server.conformance.server.reading import ending, how_refused


@check("tool-chaining-server-same-input-same-directive", on=RepeatedUnchanged)
def same_input_same_directive(repetition: RepeatedUnchanged) -> Finding | Untestable | None:
    """The same call brings the same directive."""
    return _ends_alike(repetition)


@check("tool-chaining-server-emits-to-undeclared-client", on=RepeatedUndeclared)
def emits_to_undeclared_client(repetition: RepeatedUndeclared) -> Finding | Untestable | None:
    """A directive is for every client, declared or not."""
    return _ends_alike(repetition)


@check("tool-chaining-server-ignores-unknown-settings", on=RepeatedWithLaterSettings)
def ignores_unknown_settings(
    repetition: RepeatedWithLaterSettings,
) -> Finding | Untestable | None:
    """A client of a later version is served like any other."""
    return _ends_alike(repetition)


@check("tool-chaining-server-provenance-changes-nothing", on=RepeatedWithProvenance)
def provenance_changes_nothing(repetition: RepeatedWithProvenance) -> Finding | Untestable | None:
    """What a client says of its chain has no effect."""
    return _ends_alike(repetition)


@check("tool-chaining-server-ignores-malformed-provenance", on=RepeatedWithMalformedProvenance)
def ignores_malformed_provenance(
    repetition: RepeatedWithMalformedProvenance,
) -> Finding | Untestable | None:
    """Malformed provenance is not an error."""
    return _ends_alike(repetition)


def _ends_alike(repetition: Repetition) -> Finding | Untestable | None:
    first, again = repetition.first, repetition.again
    if repetition.alike and not repetition.has_directive:
        return None  # Two calls without a directive show nothing.
    if repetition.elsewhere and how_refused(first) != how_refused(again):
        return Untestable(f"on a separate connection the call ended differently: {ending(again)}")
    return Finding(
        repetition.alike, expected=f"the same as before: {ending(first)}", seen=ending(again)
    )
