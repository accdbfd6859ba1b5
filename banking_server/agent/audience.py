"""Who a result's content is for: what the model is told, and what it never sees."""

import json
from collections.abc import Sequence
from typing import Any

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from banking_server.chaining import ChainResult, Outcome, Step

WITHHELD = "[shown to the user, and not to you]"
"""Stands where the model is kept from something."""


def for_user_alone(block: ContentBlock) -> bool:
    """Whether a content item names the user, and nobody else, as its audience."""
    audience = block.annotations.audience if block.annotations else None
    return bool(audience) and set(audience or ()) == {"user"}


def chain_for_model(chain: ChainResult, names: dict[str, str]) -> str:
    """Return what a chain's calls returned, as the model is told of it.

    `names` says what the model knows a tool by, where that is not the server's own name.
    """
    parts: list[str] = []
    # The server's wording of a directive that was followed is no longer in the chain's content.
    kept = {id(block) for block in chain.content}
    for step in chain.steps:
        name = names.get(step.tool, step.tool)
        if step.level > 1:
            parts.append(
                f"As its next step the server named the tool {name} with the arguments "
                f"{json.dumps(step.arguments, ensure_ascii=False)}. That call has been made for "
                "you: do not make it again."
            )
        blocks = [block for block in step.result.content if id(block) in kept]
        parts.append(_step_for_model(name, step, blocks))
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
    texts = [WITHHELD if for_user_alone(block) else _in_text(block) for block in blocks]
    if all(text == WITHHELD for text in texts) and step.result.structured_content is not None:
        # Servers repeat structured content as text; only without one does the model need it.
        texts.append(json.dumps(_without_secrets(step.result), ensure_ascii=False))
    heading = f"{name} failed" if step.result.is_error else f"Result of {name}"
    return f"{heading}:\n" + ("\n".join(texts) or "[no content]")


def _in_text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type}, {block.mime_type}: not shown to you]"
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource():
            return f"[{block.resource.uri}: not shown to you]"


def _without_secrets(result: CallToolResult) -> Any:
    """Return the structured content without the texts that are for the user alone.

    Structured content has no audience of its own, and servers repeat there what they say in text.
    """
    secrets = [
        block.text
        for block in result.content
        if isinstance(block, TextContent) and for_user_alone(block) and block.text
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
