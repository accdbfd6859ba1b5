"""What came of a chain: its outcome, its calls, and the one result that is made of them."""

import json
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final

from mcp_types import Annotations, CallToolResult, ContentBlock, TextContent

from banking_server.chaining.content import (
    FOLLOW_UPS,
    for_user_alone,
    in_text,
    on_the_wire,
    without_next_step,
    words_a_directive,
)
from banking_server.chaining.directive import META_KEY, Directive


class Outcome(StrEnum):
    """How a chain ended; the first row of the table of outcomes that applies (TC-C-27)."""

    CANCELLED = "cancelled"
    """The caller stopped the chain; see `ChainStop`."""
    FAILED = "failed"
    """A call brought no result, the tools could not be listed, or time ran out."""
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
    """The tool is hidden from the model, the server did not advertise, or the host said no."""


@dataclass(frozen=True)
class Step:
    """One call of a chain, with its result."""

    level: int
    """The number of the call in the chain; the first is 1."""
    tool: str
    arguments: dict[str, Any]
    result: CallToolResult
    """The complete result. From an `mcp.Client` it is the very object that the client returned."""
    deprecated_alias: bool = False
    """The directive that led to this call said `name` instead of `tool`."""
    title: str | None = None
    """What the directive that led to this call says about it to the user. Never for a model."""

    def without_words(self) -> CallToolResult:
        """Return the result without a directive, and without the words about one (TC-C-35).

        An item that is marked as such words goes by its mark alone. `nextStep` goes where it stands
        beside a directive, and on every later step, whose schema nobody above the chain knows.
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


NAME: Final = 128
"""Characters that are told, at most, of a tool's name; MCP allows no more."""


def quoted(tool: str) -> str:
    """Return a tool's name as a JSON string, so that nobody takes it for our own words."""
    return json.dumps(
        tool if len(tool) <= NAME else f"{tool[: NAME - 1]}\u2026", ensure_ascii=False
    )


class FollowUpStatus(StrEnum):
    """What became of a follow-up call."""

    MADE = "made"
    """It was made, and brought a result."""
    NOT_MADE = "not_made"
    """No request was sent, or the server refused it before it acted: with HTTP 401 or 403, or for
    its protocol version or its headers."""
    UNKNOWN = "unknown"
    """It was started and brought no result, so nobody here knows whether it took effect."""


@dataclass(frozen=True)
class FollowUp:
    """A call that a directive asked for."""

    tool: str
    arguments: dict[str, Any]
    status: FollowUpStatus
    detail: str
    """Why it was not made, or brought no result, in one sentence; empty if it was made."""
    listed: bool = True
    """Whether the tool was found in the server's list. Only then a model is told its name."""
    first: str = ""
    """The tool that was called first, if calling that again could make this call again."""

    def in_words(self, name: str | None = None) -> str:
        """Say what became of the call, for a model that knows the tool as `name` (TC-C-33).

        A name that the server does not list could be a whole sentence, which the model would take
        for the client's own. So it is not repeated, and others are in quotes (TC-C-53).
        """
        if not self.listed:
            return (
                "The server named a next step, and it was not made. Its tool is not named here, "
                "since this client has not found it in the server's list."
            )
        call = (
            f"The server named a next step: the tool {quoted(name or self.tool)} with the "
            f"arguments {json.dumps(self.arguments, ensure_ascii=False)}."
        )
        match self.status:
            case FollowUpStatus.MADE:
                return f"{call} That call was made for you: do not make it again."
            case FollowUpStatus.NOT_MADE:
                return f"{call} That call was not made: {self.detail}."
            case FollowUpStatus.UNKNOWN:
                return (
                    f"{call} That call was started, and whether it took effect is not known: "
                    f"{self.detail}. Do not make it again before you know that it did not. Calling "
                    f"{quoted(self.first)} again could make it again."
                )


@dataclass(frozen=True)
class ChainResult:
    """Everything that happened in a chain."""

    chain_id: str
    outcome: Outcome
    detail: str
    """The outcome in one sentence, for people."""
    steps: tuple[Step, ...]
    """The calls that brought a result, in order."""
    pending: Directive | None = None
    """The directive that was not followed, if there is one."""
    listed: bool = False
    """Whether the tool of the directive that was not followed was found in the server's list."""
    started: Directive | None = None
    """The directive whose call was started and brought no result, if there is one."""
    refused: bool = False
    """Whether the server refused the call that brought no result before it acted on it."""
    error: Exception | None = None
    """What was raised, if something was; see `raise_for_failure`."""

    def raise_for_failure(self) -> None:
        """Raise `ChainFailed` if a call raised or time ran out; do nothing otherwise."""
        if self.error is not None:
            raise ChainFailed(self) from self.error

    @property
    def follow_ups(self) -> tuple[FollowUp, ...]:
        """What became of each call that a directive asked for, in order."""
        calls = [
            FollowUp(step.tool, step.arguments, FollowUpStatus.MADE, "") for step in self.steps[1:]
        ]
        if (lost := self.started) is not None:
            status = FollowUpStatus.NOT_MADE if self.refused else FollowUpStatus.UNKNOWN
            first = self.steps[0].tool if self.steps else ""
            calls.append(FollowUp(lost.tool, lost.arguments, status, self.detail, first=first))
        if (left := self.pending) is not None:
            status = FollowUpStatus.NOT_MADE
            calls.append(FollowUp(left.tool, left.arguments, status, self.detail, self.listed))
        return tuple(calls)

    @property
    def content(self) -> list[ContentBlock]:
        """The content of all steps in order, so that nothing said to the user is lost (TC-C-24)."""
        return [block for step in self.steps for block in self.for_forwarding(step).content]

    def for_forwarding(self, step: Step) -> CallToolResult:
        """Return the result of one of the steps as it may be handed on.

        It is the result that came, unless a call was started on its directive. The directive and
        the words about it are then left out, whatever became of the call (TC-C-35).
        """
        started = step.level < len(self.steps) or self.started is not None
        return step.without_words() if started else step.result

    def merged(self) -> CallToolResult:
        """Return the chain as the one result of the one call that a model or a client made.

        It has the content of all steps, then one text item for the assistant that says what became
        of each follow-up call (TC-C-32, TC-C-33). `isError` is true if a step had it, or if the
        effect of a follow-up call is unknown (TC-C-34). Structured content and `_meta` are those of
        the tool that was called, the first one; what the others structured stands in their text, or
        is put there. Some hosts show their model structured content alone, so its member
        `followUps` says what became of the follow-up calls as well (TC-C-36). No directive is left,
        nor the words about one, so that nobody follows it a second time (TC-C-35, TC-S-25).

        Raises ValueError if no call was completed.
        """
        if not self.steps:
            raise ValueError("no call of this chain was completed")
        first, *others = [step.without_words() for step in self.steps]
        content = [*first.content]
        for result in others:
            content += result.content or _as_text(result)
        follow_ups = self.follow_ups
        words = [follow_up.in_words() for follow_up in follow_ups]
        if self.outcome is Outcome.MALFORMED_DIRECTIVE:
            words.append(f"A next step of the server's could not be taken: {self.detail}.")
        structured = first.structured_content
        if words:
            if isinstance(structured, dict):
                returned = [_for_model(result) for result in others]
                told = [
                    f"{line} It returned: {text}" if text else line
                    for line, text in zip_longest(words, returned)
                ]
                structured = {**structured, FOLLOW_UPS: told}
            to_model = Annotations(audience=["assistant"])
            said = TextContent(type="text", text="\n".join(words), annotations=to_model)
            content.append(said)
        is_error = any(step.result.is_error for step in self.steps) or any(
            follow_up.status is FollowUpStatus.UNKNOWN for follow_up in follow_ups
        )
        return first.model_copy(
            update={"content": content, "structured_content": structured, "is_error": is_error}
        )


class ChainFailed(Exception):
    """A call of the chain raised, or the chain's time ran out; `__cause__` is what was raised.

    `result` holds every step that was completed before, so that nothing is lost (TC-C-24).
    """

    def __init__(self, result: ChainResult) -> None:
        super().__init__(result.detail)
        self.result = result


def _for_model(result: CallToolResult) -> str:
    """Return what a result says to a model, as one text; what is for the user alone is left out."""
    items = map(on_the_wire, result.content or _as_text(result))
    return "\n".join(in_text(item) for item in items if not for_user_alone(item))


def _as_text(result: CallToolResult) -> list[ContentBlock]:
    """Return structured content as text, for a result that says nothing else."""
    structured = result.structured_content
    if structured is None:
        return []
    return [TextContent(type="text", text=json.dumps(structured, ensure_ascii=False))]
