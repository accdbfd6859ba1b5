"""Whom the content of a result is for: what the model is told, and what it never sees."""

import json
from collections.abc import Sequence
from typing import Any

from mcp.types import CallToolResult, ContentBlock, TextContent

from banking_server.chaining import ChainResult, Outcome, Step
from banking_server.chaining.content import for_user_alone, in_text, on_the_wire

WITHHELD = "[shown to the user, and not to you]"
"""Stands in place of what the model must not see."""


def chain_for_model(chain: ChainResult, names: dict[str, str]) -> str:
    """Return the results of a chain in words for the model.

    `names` maps the server's own name of a tool to the name that the model knows it by.
    """
    parts: list[str] = []
    for step in chain.steps:
        name = names.get(step.tool, step.tool)
        if step.level > 1:
            parts.append(
                f"As its next step the server named the tool {name} with the arguments "
                f"{json.dumps(step.arguments, ensure_ascii=False)}. That call has been made for "
                "you: do not make it again."
            )
        parts.append(_step_for_model(name, step, chain.said(step)))
    if chain.outcome is Outcome.FAILED:
        parts.append(f"Then this went wrong: {chain.detail}. Whether it took effect is not known.")
    elif chain.pending is not None:
        name = names.get(chain.pending.tool, chain.pending.tool)
        parts.append(
            f"As its next step the server named the tool {name} with the arguments "
            f"{json.dumps(chain.pending.arguments, ensure_ascii=False)}. That call was not made: "
            f"{chain.detail}."
        )
    elif chain.outcome is not Outcome.COMPLETED:
        parts.append(f"A next step of the server's could not be taken: {chain.detail}.")
    return "\n".join(parts)


def _step_for_model(name: str, step: Step, blocks: Sequence[ContentBlock]) -> str:
    texts = [
        WITHHELD if for_user_alone(item) else in_text(item, note=": not shown to you")
        for item in map(on_the_wire, blocks)
    ]
    if all(text == WITHHELD for text in texts) and step.result.structured_content is not None:
        # Text repeats the structured content; the model needs it only if there is no text for it.
        texts.append(json.dumps(_without_secrets(step.result), ensure_ascii=False))
    heading = f"{name} failed" if step.result.is_error else f"Result of {name}"
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

    return clean(result.structured_content)
