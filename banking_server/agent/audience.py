"""Whom the content of a result is for: what the model is told, and what it never sees."""

import json
from dataclasses import replace
from typing import Any, Final

from mcp.types import CallToolResult, TextContent

from banking_server.chaining import ChainResult, FollowUpStatus, Outcome
from banking_server.chaining.content import for_user_alone, in_text, on_the_wire
from banking_server.text import cut

MAX_RESULT: Final = 20_000
"""Characters of one result that the model is told."""

WITHHELD: Final = "[shown to the user, and not to you]"
"""Stands in place of what the model must not see."""


def chain_for_model(chain: ChainResult, names: dict[str, str]) -> str:
    """Return a chain as one text for the model: the answer to the one call that it made (TC-C-32).

    The text has the result of each step, under the name of its tool, and says of each follow-up
    call what became of it (TC-C-33). The server's own words for a directive are left out, so that
    this host alone tells the model of it (TC-C-35).

    `names` maps the server's own name of a tool to the name that the model knows it by.
    """
    results = [
        result_for_model(names.get(step.tool, step.tool), step.without_words())
        for step in chain.steps
    ]
    if not results:
        return f"No result came: {chain.detail}. Whether it took effect is not known."
    parts = results[:1]
    for number, follow_up in enumerate(chain.follow_ups, start=1):
        told = replace(follow_up, first=names.get(follow_up.first, follow_up.first))
        parts.append(told.in_words(names.get(follow_up.tool, follow_up.tool)))
        if follow_up.status is FollowUpStatus.MADE:
            parts.append(results[number])
    if chain.outcome is Outcome.MALFORMED_DIRECTIVE:
        parts.append(f"A next step of the server's could not be taken: {chain.detail}.")
    return "\n".join(parts)


def result_for_model(name: str, result: CallToolResult) -> str:
    """Return one result as text for the model, under the name by which it knows the tool."""
    seen = visible(result)
    texts = [in_text(on_the_wire(item), note=": not shown to you") for item in seen.content]
    if all(text == WITHHELD for text in texts) and seen.structured_content is not None:
        # Text repeats the structured content; the model needs it only if there is no text for it.
        texts.append(json.dumps(seen.structured_content, ensure_ascii=False))
    heading = f"{name} failed" if result.is_error else f"Result of {name}"
    return f"{heading}:\n{cut(chr(10).join(texts) or '[no content]', MAX_RESULT)}"


def visible(result: CallToolResult) -> CallToolResult:
    """Return a result without what is for the user alone.

    Structured content has no audience of its own, and servers repeat in it what they say in text.
    """
    kept_back = [item for item in result.content if for_user_alone(on_the_wire(item))]
    secrets = [one.text for one in kept_back if isinstance(one, TextContent) and one.text]
    withheld = TextContent(type="text", text=WITHHELD)

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, str) and any(secret in value for secret in secrets):
            return WITHHELD
        return value

    content = [withheld if item in kept_back else item for item in result.content]
    structured = clean(result.structured_content)
    return result.model_copy(update={"content": content, "structured_content": structured})
