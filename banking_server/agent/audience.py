"""Whom the content of a result is for: what the model is told, and what it never sees."""

import json
from typing import Any

from mcp.types import CallToolResult, TextContent

from banking_server.chaining import ChainResult, Fate, Outcome
from banking_server.chaining.content import (
    for_user_alone,
    in_text,
    on_the_wire,
    without_next_step,
    words_a_directive,
)

WITHHELD = "[shown to the user, and not to you]"
"""Stands in place of what the model must not see."""


def chain_for_model(chain: ChainResult, names: dict[str, str]) -> str:
    """Return a chain as one text for the model: the answer to the one call that it made (TC-C-32).

    The text has the result of each step, under the name of its tool, and says of each follow-up
    call what became of it (TC-C-33). It has no directive, in whatever form: the server's own words
    for one are left out, so that the model is told of each step by this host alone.

    `names` maps the server's own name of a tool to the name that the model knows it by.
    """
    parts: list[str] = []
    if chain.steps:
        first = chain.steps[0]
        parts.append(_result_for_model(names.get(first.tool, first.tool), first.result))
    else:
        parts.append(f"No result came: {chain.detail}. Whether it took effect is not known.")
    for number, follow_up in enumerate(chain.follow_ups, start=1):
        name = names.get(follow_up.tool, follow_up.tool)
        parts.append(follow_up.in_words(name))
        if follow_up.fate is Fate.MADE:
            parts.append(_result_for_model(name, chain.steps[number].result))
    if chain.outcome is Outcome.MALFORMED_DIRECTIVE:
        parts.append(f"A next step of the server's could not be taken: {chain.detail}.")
    return "\n".join(parts)


def _result_for_model(name: str, result: CallToolResult) -> str:
    texts = [
        WITHHELD if for_user_alone(item) else in_text(item, note=": not shown to you")
        for item in map(on_the_wire, result.content)
        if not words_a_directive(item)
    ]
    if all(text == WITHHELD for text in texts) and result.structured_content is not None:
        # Text repeats the structured content; the model needs it only if there is no text for it.
        texts.append(json.dumps(_without_secrets(result), ensure_ascii=False))
    heading = f"{name} failed" if result.is_error else f"Result of {name}"
    return f"{heading}:\n" + ("\n".join(texts) or "[no content]")


def _without_secrets(result: CallToolResult) -> Any:
    """Return the structured content without the texts that are for the user alone.

    Structured content has no audience of its own, and servers repeat in it what they say in text.
    """
    secrets = [
        block.text
        for block in result.content
        if isinstance(block, TextContent) and block.text and for_user_alone(on_the_wire(block))
    ]

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, str) and any(secret in value for secret in secrets):
            return WITHHELD
        return value

    return clean(without_next_step(result.structured_content))
