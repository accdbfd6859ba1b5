"""The result of a chain: its outcome, its calls, and the one result that is made of them."""

import json
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from mcp_types import Annotations, CallToolResult, ContentBlock, TextContent

from tool_chaining.content import (
    FOLLOW_UPS,
    for_user_alone,
    in_text,
    json_string,
    on_the_wire,
    without_next_step,
    words_a_directive,
)
from tool_chaining.directive import META_KEY


class Outcome(StrEnum):
    """How a chain ended: the first row that applies of the table of outcomes."""

    CANCELLED = "cancelled"
    """The task of the chain was cancelled."""
    FAILED = "failed"
    """A call returned no result, the tools could not be listed, or time ran out."""
    COMPLETED = "completed"
    """The last result names no further tool."""
    MALFORMED_DIRECTIVE = "malformed_directive"
    """The last result has a `_meta.nextTool` that is not a directive."""
    LIMIT_REACHED = "limit_reached"
    """The chain has made as many calls as it may."""
    UNKNOWN_TOOL = "unknown_tool"
    """The server does not list the tool."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The directive's arguments are not valid against the tool's input schema, or could not be
    checked against it."""
    CYCLE = "cycle"
    """The same tool was called with the same arguments before in this chain."""
    DECLINED = "declined"
    """The tool is hidden from the model, the server did not advertise, or the host refused."""


@dataclass(frozen=True)
class Step:
    """One call of a chain, with its result."""

    level: int
    """The number of the call in the chain; the first is 1."""
    tool: str
    arguments: dict[str, Any]
    result: CallToolResult
    """The complete result. From an `mcp.Client` it is the same object that the client returned."""
    title: str | None = None
    """The title of the directive that led to this call, for the user. Never for a model."""

    def without_words(self) -> CallToolResult:
        """Return the result without a directive, and without text that describes one (TC-C-35).

        Text items are removed only by their mark. `nextStep` is removed beside a directive, and in
        every follow-up call, because the caller of the chain does not know the tool's schema.
        """
        meta = self.result.meta or {}
        kept = {key: value for key, value in meta.items() if key != META_KEY}
        structured = self.result.structured_content
        if self.level > 1 or META_KEY in meta:
            structured = without_next_step(structured)
        content = [
            block for block in self.result.content if not words_a_directive(on_the_wire(block))
        ]
        return self.result.model_copy(
            update={"content": content, "structured_content": structured, "meta": kept or None}
        )


class FollowUpStatus(StrEnum):
    """Whether a follow-up call was made."""

    MADE = "made"
    """It was made, and returned a result."""
    NOT_MADE = "not_made"
    """No request was sent, or the server refused it before it acted: with HTTP 401 or 403, or for
    its protocol version or its headers."""
    UNKNOWN = "unknown"
    """It was started and returned no result, so its effect is unknown."""


@dataclass(frozen=True)
class FollowUp:
    """A call that a directive asked for."""

    level: int
    """The number that the call has, or would have, in the chain; the first follow-up is 2."""
    tool: str
    arguments: dict[str, Any]
    status: FollowUpStatus
    detail: str
    """Why it was not made, or returned no result, in one sentence; empty if it was made."""
    listed: bool = True
    """Whether the tool was found in the server's list. If not, a model is not told its name."""
    first: str = ""
    """The first tool of the chain. To call it again could make this call again."""
    is_error: bool = False
    """Whether the call was made and its result has `isError`."""

    def text_for_model(self) -> str:
        """Return a sentence about the call, for a model (TC-C-33, TC-C-52).

        A name or an argument could be a whole sentence, which the model would read as the client's
        own. So the call is named by its number and its tool: only a listed tool, and in quotes
        (TC-C-53).
        """
        if not self.listed:
            return (
                f"Call {self.level}, a further tool that the server named, was not made. Its name "
                "is left out, since this client has not found it in the server's list."
            )
        call = f"Call {self.level}, the tool {json_string(self.tool)} that the server named,"
        match self.status:
            case FollowUpStatus.MADE if self.is_error:
                return f"{call} was made for you, and its result is an error."
            case FollowUpStatus.MADE:
                return f"{call} was made for you: do not make it again."
            case FollowUpStatus.NOT_MADE:
                return f"{call} was not made: {self.detail}."
            case FollowUpStatus.UNKNOWN:
                return (
                    f"{call} was started, and whether it took effect is not known: {self.detail}. "
                    "Do not make it again before you know that it did not. Calling "
                    f"{json_string(self.first)} again could make it again."
                )


@dataclass(frozen=True)
class ChainResult:
    """Everything that happened in a chain."""

    chain_id: str
    outcome: Outcome
    detail: str
    """The outcome in one sentence, for people."""
    steps: tuple[Step, ...]
    """The calls that returned a result, in order."""
    unfinished: FollowUp | None = None
    """The call that the last directive asked for, if it brought no result."""
    error: Exception | None = None
    """The exception that ended the chain, if there is one; see `raise_for_failure`."""

    def raise_for_failure(self) -> None:
        """Raise `error` if a call raised or time ran out; do nothing otherwise."""
        if self.error is not None:
            raise self.error

    @property
    def follow_ups(self) -> tuple[FollowUp, ...]:
        """Each call that a directive asked for, in order, with its status."""
        status = FollowUpStatus.MADE
        made = [
            FollowUp(n.level, n.tool, n.arguments, status, "", is_error=n.result.is_error is True)
            for n in self.steps[1:]
        ]
        return (*made, *([self.unfinished] if self.unfinished else []))

    @property
    def content(self) -> list[ContentBlock]:
        """The content of all steps in order, without the words (TC-C-24, TC-C-35)."""
        return [block for step in self.steps for block in step.without_words().content]

    def merged(self) -> CallToolResult:
        """Return the chain as one result, for the model or client that made one call.

        It has the content of all steps, then one text item for the assistant with the status of
        each follow-up call (TC-C-32, TC-C-33). `isError` is true if a step had it, or if the effect
        of a follow-up call is unknown (TC-C-34). Structured content and `_meta` are those of the
        first tool. Structured content of a later tool without content is added as text. Some hosts
        show their model structured content only, so its member `followUps` repeats the status of
        the follow-up calls. If the server uses that name itself, the merged result has no
        structured content, and such hosts show the content (TC-C-36). Directives, and text that
        describes one, are removed, so that no client follows them a second time (TC-C-35,
        TC-S-25).

        Raises ValueError if no call was completed.
        """
        if not self.steps:
            raise ValueError("no call of this chain was completed")
        first, *others = [step.without_words() for step in self.steps]
        content = [*first.content]
        for result in others:
            content += result.content or _as_text(result)
        follow_ups = self.follow_ups
        texts = [follow_up.text_for_model() for follow_up in follow_ups]
        if self.outcome is Outcome.MALFORMED_DIRECTIVE:
            texts.append(f"The server named a next step that cannot be read: {self.detail}.")
        structured = first.structured_content
        if texts:
            if not isinstance(structured, dict) or FOLLOW_UPS in structured:
                structured = None
            else:
                returned = [_for_model(result) for result in others]
                statuses = [
                    f"{status} It returned: {text}" if text else status
                    for status, text in zip_longest(texts, returned)
                ]
                structured = {**structured, FOLLOW_UPS: statuses}
            to_model = Annotations(audience=["assistant"])
            content.append(TextContent(type="text", text="\n".join(texts), annotations=to_model))
        is_error = any(step.result.is_error for step in self.steps) or any(
            follow_up.status is FollowUpStatus.UNKNOWN for follow_up in follow_ups
        )
        return first.model_copy(
            update={"content": content, "structured_content": structured, "is_error": is_error}
        )


def _for_model(result: CallToolResult) -> str:
    """Return the content of a result as one text for a model, without items for the user only."""
    items = map(on_the_wire, result.content or _as_text(result))
    return "\n".join(in_text(item) for item in items if not for_user_alone(item))


def _as_text(result: CallToolResult) -> list[ContentBlock]:
    """Return the structured content of a result as text items: none if it has none."""
    structured = result.structured_content
    if structured is None:
        return []
    return [TextContent(type="text", text=json.dumps(structured, ensure_ascii=False))]
