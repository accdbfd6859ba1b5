"""The directive in words, for a client that does not know the extension, and what stands beside."""

from collections.abc import Sequence
from typing import Final

from banking_server.chaining.directive import IDENTIFIER, META_KEY
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, NotApplicable, Untestable
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import (
    Crossing,
    PassedOn,
    ResultInWords,
    ResultWithDirective,
)
from banking_server.conformance.server.reading import (
    SeenDirective,
    is_for_assistant,
    is_marked,
    objects_in,
    words_of,
)
from banking_server.conformance.values import same, shown

NEXT_STEP: Final = "nextStep"
"""The member of structured content that repeats the next step."""

MALFORMED: Final = Untestable("the directive is malformed, so there is nothing to put in words")


@check("tool-chaining-server-content-without-directive", on=ResultWithDirective)
def content_without_directive(result: ResultWithDirective) -> Finding:
    """The content says something to a client that knows nothing of directives."""
    words = words_of(result.content, result.directive)
    others = [item for item in result.content if item not in words]
    blank = [item for item in others if _is_blank(item)]
    return Finding(
        len(others) > len(blank),
        expected="at least one content item besides the one that words the directive, "
        "and not a blank text",
        seen=f"{len(others)} such items" + (f", {len(blank)} of them blank" if blank else ""),
    )


def _is_blank(item: Json) -> bool:
    """Return whether a content item is a text that says nothing."""
    text = item.get("text")
    return item.get("type") == "text" and isinstance(text, str) and not text.strip()


@check("tool-chaining-server-no-extra-text-for-declared-client", on=ResultWithDirective)
def no_extra_text_for_declared_client(result: ResultWithDirective) -> Finding | None:
    """A client that follows directives by itself gets none in words."""
    if not result.declared or result.directive.key is None:
        return None
    wordings = len(words_of(result.content, result.directive))
    return Finding(
        not wordings,
        expected="no item that words the directive, since this client declared the extension",
        seen=f"{wordings} such items",
    )


@check("tool-chaining-server-names-next-tool-in-text", on=ResultInWords)
def names_next_tool_in_text(result: ResultInWords) -> Finding | Untestable:
    """The last item tells a model which call comes next."""
    seen = result.directive
    if seen.key is None:
        return MALFORMED
    last = result.content[-1] if result.content else {}
    return Finding(
        _words_end_with_arguments(last, seen),
        expected='a last item of type text with annotations.audience ["assistant"] that names '
        f"{seen.tool} and ends with its arguments as one JSON object: {shown(seen.arguments)}",
        seen=f"the last item: {shown(last)}",
    )


@check(
    "tool-chaining-server-marks-next-tool-text",
    on=ResultInWords,
    unseen=NotApplicable("the server words no directive"),
)
def marks_next_tool_text(result: ResultInWords) -> Sequence[Finding]:
    """Each item that words the directive is marked as such."""
    if result.directive.key is None:
        return []
    return [
        Finding(
            is_marked(item),
            expected=f'_meta: {{"{IDENTIFIER}": {{"describes": "{META_KEY}"}}}} on that item',
            seen=f"_meta: {shown(item.get('_meta'))}",
        )
        for item in words_of(result.content, result.directive)
    ]


@check(
    "tool-chaining-server-next-step-equals-directive",
    on=ResultWithDirective,
    unseen=NotApplicable("no structured content has a nextStep beside a directive"),
)
def next_step_equals_directive(result: ResultWithDirective) -> Finding | None:
    """The next step in structured content is that of the directive, and nothing needs it."""
    seen = result.directive
    if NEXT_STEP not in result.structured or seen.key is None:
        return None
    step = result.structured[NEXT_STEP]
    required = result.output_schema.get("required")
    is_required = isinstance(required, list) and NEXT_STEP in required
    alike = (
        isinstance(step, dict)
        and step.keys() <= {"tool", "arguments"}
        and step.get("tool") == seen.tool
        and same(step.get("arguments", {}), seen.arguments)
    )
    return Finding(
        alike and not is_required,
        expected=f"{NEXT_STEP} with tool {shown(seen.tool)} and arguments {shown(seen.arguments)} "
        "and nothing else, "
        "which the output schema does not require",
        seen=shown(step) + (", which the output schema requires" if is_required else ""),
    )


@check(
    "tool-chaining-server-no-next-step-for-declared-client",
    on=ResultWithDirective,
    unseen=NotApplicable("no structured content has a nextStep beside a directive"),
)
def no_next_step_for_declared_client(result: ResultWithDirective) -> Finding | None:
    """A client that follows directives by itself gets none in structured content."""
    has_one = NEXT_STEP in result.structured
    if not result.declared or result.directive.key is None:
        return None
    return Finding(
        not has_one,
        expected=f"no {NEXT_STEP} in structuredContent, since this client declared the extension",
        seen=f"{NEXT_STEP}: {shown(result.structured[NEXT_STEP])}" if has_one else "none",
    )


@check(
    "tool-chaining-server-no-next-step-in-content",
    on=ResultWithDirective,
    unseen=NotApplicable("no structured content has a nextStep beside a directive"),
)
def no_next_step_in_content(result: ResultWithDirective) -> Finding | None:
    """The next step of structured content does not stand in a content item as well."""
    repeating = [item for item in result.content if _repeats_next_step(item)]
    if not repeating and NEXT_STEP not in result.structured:
        return None
    return Finding(
        not repeating,
        expected=f"no content item with {NEXT_STEP}",
        seen=shown(repeating[0]) if repeating else "none",
    )


def _repeats_next_step(item: Json) -> bool:
    """Whether a text item is structured content in words: an object that has the next step."""
    text = item.get("text")
    return isinstance(text, str) and any(NEXT_STEP in found for found, _ in objects_in(text))


@check("tool-chaining-server-intermediary-removes-directive", on=PassedOn)
def intermediary_removes_directive(result: PassedOn) -> Finding:
    """Whoever followed a directive leaves nothing of it for others to follow again."""
    left = _left(result)
    return Finding(
        not left,
        expected="neither the directive nor its words, since this server followed it",
        seen=", ".join(left) or "neither",
    )


@check("tool-chaining-server-no-directive-across-servers", on=Crossing)
def no_directive_across_servers(result: Crossing) -> Finding:
    """Whoever advertises the extension passes no directive on from one server to another."""
    left = _left(result)
    return Finding(
        not (left and result.advertised),
        expected="neither the directive nor its words, since the tool is another server's",
        seen=", ".join(left) or "neither",
    )


def _left(result: PassedOn | Crossing) -> list[str]:
    """Return what is left of a directive in a result, in words."""
    return [
        *(["the directive"] if result.directive is not None else []),
        *(["its words"] if words_of(result.content, result.directive) else []),
        *([NEXT_STEP] if NEXT_STEP in result.structured else []),
    ]


def _words_end_with_arguments(item: Json, seen: SeenDirective) -> bool:
    text = item.get("text")
    return (
        is_for_assistant(item)
        and isinstance(text, str)
        and seen.tool is not None
        and seen.tool in text
        and any(
            same(found, seen.arguments) and not rest.strip() for found, rest in objects_in(text)
        )
    )
