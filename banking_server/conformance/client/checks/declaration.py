"""What the client declared of itself: that it knows the extension, and with which settings."""

from typing import Any, Final

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.checks.registry import kind
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable
from banking_server.conformance.specification import schema_of
from banking_server.conformance.values import shown

_PLACES: Final = ("extensions", "experimental")


@kind("declared")
def declared(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The client declared the extension, in `initialize` or in every request (`in`)."""
    declarations = case_run.log.client_capabilities()
    if check.place == "initialize":
        where = "capabilities.extensions or capabilities.experimental of initialize"
        return Finding(
            any(_settings_in(capabilities, *_PLACES) for capabilities in declarations),
            expected=f"{IDENTIFIER} in {where}",
            seen=f"capabilities {shown(declarations)}",
        )
    requests = len(case_run.log.requests)
    declaring = sum(bool(_settings_in(capabilities, "extensions")) for capabilities in declarations)
    return Finding(
        declaring == requests,
        expected=f"{IDENTIFIER} in clientCapabilities.extensions of every request's _meta",
        seen=f"in {declaring} of {requests} requests",
    )


@kind("settings_valid")
def settings_valid(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Every settings object that the client declared meets the published schema."""
    found = [
        settings
        for capabilities in case_run.log.client_capabilities()
        for settings in _settings_in(capabilities, *_PLACES)
    ]
    if not found:
        return NotApplicable("the client declares no settings")
    wrong = [settings for settings in found if not schema_of("settings").is_valid(settings)]
    return Finding(
        not wrong,
        expected="a settings object whose version, if there is one, is an integer of at least 1",
        seen=shown(wrong[0] if wrong else found[0]),
    )


def _settings_in(capabilities: Json, *names: str) -> list[Any]:
    """Return the settings of the extension that a client's capabilities hold in these members."""
    places = [capabilities.get(name) for name in names]
    return [
        place[IDENTIFIER] for place in places if isinstance(place, dict) and IDENTIFIER in place
    ]
