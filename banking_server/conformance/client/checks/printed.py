"""What the client handed on in the end: the merged result that it printed."""

from typing import Any

from banking_server.conformance.client.checks.registry import kind
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from banking_server.conformance.values import same, shown


@kind("printed_content")
def printed_content(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The printed `content` is the expected one, as far as every client keeps it."""
    printed = _printed(case_run)
    if not isinstance(printed, dict):
        return printed
    seen = [_reduced(item) for item in printed["content"] if not _for_assistant_alone(item)]
    wanted = [_reduced(item) for item in case_run.case.expect.content or []]
    return Finding(
        same(seen, wanted),
        expected=f"content in this order: {shown(wanted)}",
        seen=f"content: {shown(seen)}",
    )


@kind("printed_content_without")
def printed_content_without(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """No printed content item has the text `text`."""
    printed = _printed(case_run)
    if not isinstance(printed, dict):
        return printed
    texts = [item.get("text") for item in printed["content"] if isinstance(item, dict)]
    return Finding(
        check.text not in texts,
        expected=f"no content item with the text {shown(check.text)}",
        seen=shown(texts),
    )


@kind("printed_outcome")
def printed_outcome(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The printed `outcome` is the expected one."""
    printed = _printed(case_run)
    if not isinstance(printed, dict):
        return printed
    if "outcome" not in printed:
        return Untestable("the printed result has no outcome")
    expected = case_run.case.expect.outcome
    return Finding(
        printed["outcome"] == expected,
        expected=f"outcome {expected}",
        seen=f"outcome {printed['outcome']}",
    )


def _printed(case_run: CaseRun) -> Json | Untestable | NotApplicable:
    """Return what the client printed, or why it is not judged."""
    made = [call.tool for call in case_run.log.operations]
    if made != [call.tool for call in case_run.case.expect.calls]:
        # What it prints then belongs to another course, which other checks judge.
        return NotApplicable("the client made other calls than expected")
    printed = case_run.end.printed
    if printed is not None:
        return printed
    return Untestable(
        "the client does not print the merged result as JSON on its last line of output"
        + ("" if case_run.end.exit_code == 0 else f"; {case_run.end}")
    )


def _reduced(item: Any) -> Any:
    """Reduce a content item to what every client keeps of it."""
    if not isinstance(item, dict):
        return item
    kept = {name: item[name] for name in ("type", "text", "annotations") if item.get(name)}
    if isinstance(annotations := kept.get("annotations"), dict):
        # Some clients write out members that the server left out.
        kept["annotations"] = {name: value for name, value in annotations.items() if value}
    return kept


def _for_assistant_alone(item: Any) -> bool:
    annotations = item.get("annotations") if isinstance(item, dict) else None
    return isinstance(annotations, dict) and annotations.get("audience") == ["assistant"]
