"""The directive in words, for a client that does not know the extension, and what stands beside."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from banking_server.chaining.directive import IDENTIFIER, META_KEY
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, NotApplicable
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import ResultInWords, ResultWithDirective
from banking_server.conformance.server.reading import SeenDirective
from banking_server.conformance.values import same, shown


@check("tool-chaining-server-content-without-directive", on=ResultWithDirective)
def content_without_directive(result: ResultWithDirective) -> Finding:
    """The content says something to a client that knows nothing of directives."""
    others = len(result.content) - len(_wordings(result))
    return Finding(
        others > 0,
        expected="at least one content item besides the one that words the directive",
        seen=f"{others} such items",
    )


@check("tool-chaining-server-no-extra-text-for-declared-client", on=ResultWithDirective)
def no_extra_text_for_declared_client(result: ResultWithDirective) -> Finding | None:
    """A client that follows directives by itself gets none in words."""
    if not result.declared or result.directive.key is None:
        return None
    wordings = len(_wordings(result))
    return Finding(
        not wordings,
        expected="no item that words the directive, since this client declared the extension",
        seen=f"{wordings} such items",
    )


@check("tool-chaining-server-names-next-tool-in-text", on=ResultInWords)
def names_next_tool_in_text(result: ResultInWords) -> Finding | None:
    """The last item tells a model to make the call."""
    seen = result.directive
    if seen.key is None:
        return None
    last = result.content[-1] if result.content else {}
    return Finding(
        _words_fully(last, seen),
        expected='a last item of type text with annotations.audience ["assistant"] that names '
        f"{seen.tool} and holds its arguments as one JSON object: {shown(seen.arguments)}",
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
            _is_marked(item),
            expected=f'_meta: {{"{IDENTIFIER}": {{"describes": "{META_KEY}"}}}} on that item',
            seen=f"_meta: {shown(item.get('_meta'))}",
        )
        for item in _wordings(result)
    ]


def _wordings(result: ResultWithDirective | ResultInWords) -> list[Json]:
    """Return the items that word the directive: by their mark, or because they say it all."""
    return [
        item for item in result.content if _is_marked(item) or _words_fully(item, result.directive)
    ]


def _is_marked(item: Json) -> bool:
    meta = item.get("_meta")
    mark = meta.get(IDENTIFIER) if isinstance(meta, dict) else None
    return isinstance(mark, dict) and mark.get("describes") == META_KEY


def _words_fully(item: Json, seen: SeenDirective) -> bool:
    annotations = item.get("annotations")
    audience = annotations.get("audience") if isinstance(annotations, dict) else None
    text = item.get("text")
    return (
        item.get("type") == "text"
        and audience == ["assistant"]
        and isinstance(text, str)
        and seen.tool is not None
        and seen.tool in text
        and any(same(found, seen.arguments) for found in _objects_in(text))
    )


def _objects_in(text: str) -> Iterator[Any]:
    """Yield every JSON object that stands somewhere in a text."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        yield found
        start = text.find("{", end)
