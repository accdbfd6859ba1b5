"""The result of a chain: its outcome, its calls, and the single result merged from them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tool_chaining.content import (
    FOLLOW_UPS,
    Json,
    content_of,
    describes_directive,
    for_user_alone,
    in_text,
    is_error,
    json_string,
    json_text,
    member,
    suggestion,
    without_next_step,
)
from tool_chaining.directive import META_KEY, Directive
from tool_chaining.negotiation import NEGOTIATED_FROM
from tool_chaining.record import Answer
from tool_chaining.values import same

if TYPE_CHECKING:
    from mcp_types import CallToolResult


class Outcome(StrEnum):
    """How a chain ended: the first row of the table of outcomes that applies."""

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
    """The server does not advertise, the tool is hidden from the model, or the host refused."""


@dataclass(frozen=True)
class Step:
    """One call of a chain, with its result."""

    level: int
    """The number of the call in the chain; the first is 1."""
    tool: str
    arguments: dict[str, Any]
    result: Json
    """The complete result, as JSON."""
    title: str | None = None
    """The title of the directive that led to this call, for the user. Never for a model."""
    by_rule: bool = False
    """Whether the user's rule led to this call, and not a directive."""

    @property
    def is_error(self) -> bool:
        """Whether the result reports an error."""
        return is_error(self.result)

    def without_description(self) -> Json:
        """Return the result without a directive, and without text that describes one (TC-C-35).

        Text items are removed only by their mark, and `nextStep` only beside a directive.
        """
        result = dict(self.result)
        meta = result.get("_meta")
        if isinstance(meta, Mapping) and META_KEY in meta:
            result["_meta"] = {key: value for key, value in meta.items() if key != META_KEY}
            if not result["_meta"]:
                del result["_meta"]
            if "structuredContent" in result:
                result["structuredContent"] = without_next_step(result["structuredContent"])
        if any(map(describes_directive, content := content_of(result))):
            result["content"] = [item for item in content if not describes_directive(item)]
        return self.result if result == self.result else result


class FollowUpStatus(StrEnum):
    """Whether a follow-up call was made."""

    MADE = "made"
    """It was made, and returned a result."""
    NOT_MADE = "not_made"
    """No request was sent, or the server refused it before acting: missing authorization, a missing
    client capability, its protocol version or its headers."""
    UNKNOWN = "unknown"
    """It was started and returned no result, so its effect is unknown."""


@dataclass(frozen=True)
class FollowUp:
    """A call that a directive asked for."""

    level: int
    """The call's number in the chain, made or not; the first follow-up is 2."""
    tool: str
    arguments: dict[str, Any]
    status: FollowUpStatus
    detail: str = ""
    """Why it was not made, or returned no result, in one sentence; empty if it was made."""
    listed: bool = True
    """Whether the server lists the tool. If not, the model does not see its name."""
    is_error: bool = False
    """Whether the call was made and its result has `isError`."""
    by_rule: bool = False
    """Whether the user's rule asked for the call, and not a directive."""
    suggested: bool = False
    """Whether the call was not made only because nobody could be asked. Then the merged result
    suggests it to the model."""

    def text_for_model(self) -> str:
        """Return a sentence about the call, for a model (TC-C-33, TC-C-52).

        A name or an argument could be a whole sentence, which the model would read as the client's
        own. So the call is named by its number and its tool: only a listed tool, and in quotes
        (TC-C-53).
        """
        if not self.listed:
            whose = "a rule of the user" if self.by_rule else "the server"
            return (
                f"Call {self.level}, a further step that {whose} named, was not made: "
                f"{self.detail}."
            )
        step = f"the server's next step {json_string(self.tool)}"
        if self.by_rule:
            step = f"the next step {json_string(self.tool)} by a rule of the user"
        call = f"Call {self.level}, {step},"
        match self.status:
            case FollowUpStatus.MADE if self.is_error:
                return f"{call} has already run and returned an error."
            case FollowUpStatus.MADE:
                return f"{call} has already run. Do not call it again."
            case FollowUpStatus.NOT_MADE:
                return f"{call} was not made: {self.detail}."
            case FollowUpStatus.UNKNOWN:
                return (
                    f"{call} was started, and it is not known whether it took effect: "
                    f"{self.detail}. Do not call it again unless you know that it did not."
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
    """The call that the last directive or rule asked for, if it brought no result."""
    error: Exception | None = None
    """The exception that ended the chain, if there is one; see `raise_for_failure`."""
    followed: bool = True
    """Whether the client follows this server. If not, no result of it is changed (TC-C-03)."""

    def raise_for_failure(self) -> None:
        """Raise `error` if a call raised or time ran out; do nothing otherwise."""
        if self.error is not None:
            raise self.error

    @property
    def follow_ups(self) -> tuple[FollowUp, ...]:
        """Each call that a directive asked for, in order, with its status."""
        status = FollowUpStatus.MADE
        made = [
            FollowUp(n.level, n.tool, n.arguments, status, is_error=n.is_error, by_rule=n.by_rule)
            for n in self.steps[1:]
        ]
        return (*made, *([self.unfinished] if self.unfinished else []))

    @property
    def content(self) -> list[Any]:
        """The content items of all steps in order, as JSON (TC-C-24).

        Text that describes a directive is left out.
        """
        return [item for result in self._results for item in content_of(result)]

    @property
    def ended_well(self) -> bool:
        """Whether the chain is complete, and no result reports an error (TC-C-55)."""
        return self.outcome is Outcome.COMPLETED and not any(step.is_error for step in self.steps)

    @property
    def _results(self) -> list[Json]:
        """The results without directives, of a followed server or for a rule's step."""
        by_rule = {call.level - 1 for call in self.follow_ups if call.by_rule}
        return [
            step.without_description() if self.followed or step.level in by_rule else step.result
            for step in self.steps
        ]

    def merged(self) -> "CallToolResult":
        """Return the chain as one result, as `merged_json` does, in the model of `mcp`."""
        from mcp_types import CallToolResult

        return CallToolResult.model_validate(self.merged_json(), by_alias=True, by_name=False)

    def merged_json(self) -> Json:
        """Return the chain as one result, for the model or client that made one call.

        It has the content of all steps, then one text item for the assistant with the status of
        each follow-up call (TC-C-32, TC-C-33). `isError` is true if a step had it, or if the effect
        of a follow-up call is unknown. Structured content and `_meta` are those of the first tool.
        Structured content of a later tool is added as text, unless an item repeats it. Some hosts
        show their model structured content only, so its member `followUps` repeats the status of
        the follow-up calls, with what each returned as one JSON string (TC-C-36). Directives, and
        text that describes one, are removed, so that no client follows them a second time
        (TC-C-35, TC-S-25).

        Raises ValueError if no call brought a result.
        """
        if not self.steps:
            raise ValueError(f"no call of this chain brought a result: {self.detail}")
        first, *others = self._results
        follow_ups = self.follow_ups
        texts = [follow_up.text_for_model() for follow_up in follow_ups]
        if self.outcome is Outcome.MALFORMED_DIRECTIVE:
            texts.append(f"A next step cannot be read: {self.detail}.")
        if not texts:
            return first
        unknown = any(call.status is FollowUpStatus.UNKNOWN for call in follow_ups)
        failed = unknown or any(step.is_error for step in self.steps)
        if failed and (unknown or others):
            again = json_string(self.steps[0].tool)
            texts.append(f"Calling {again} again could repeat what was already done.")
        merged, structured = dict(first), first.get("structuredContent")
        content = [*content_of(first)]
        for result in others:
            content += _with_structured(result)
        content.append(_for_assistant("\n".join(texts)))
        if isinstance(structured, dict) and FOLLOW_UPS not in structured:
            returned = [f" It returned: {_for_model(result)}" for result in others]
            statuses = [a + b for a, b in zip_longest(texts, returned, fillvalue="")]
            merged["structuredContent"] = {**structured, FOLLOW_UPS: statuses}
        if self.unfinished is not None and self.unfinished.suggested:
            content.append(suggestion(Directive(self.unfinished.tool, self.unfinished.arguments)))
        return {**merged, "content": content, "isError": failed}


def answer_in(result: Json, revision: str | None) -> tuple[Answer, str]:
    """Return what a result means for its call, and why it is not complete; "" if it is."""
    kind = result.get("resultType")
    is_modern = (revision or "") >= NEGOTIATED_FROM
    if kind == "task" if is_modern else result.get("task") is not None:
        # The server knows the task, which goes on.
        waits = "it was answered with a task, for whose result this client does not wait"
        return Answer.FAILURE, waits
    if kind == "input_required":
        return Answer.NONE, "its answer asks for input that this client did not give"
    if isinstance(kind, str) and kind != "complete":
        return Answer.NONE, f"its answer has the unknown resultType {kind!r}"
    return Answer.FAILURE if is_error(result) else Answer.SUCCESS, ""


def _for_model(result: Json) -> str:
    """Return the content of a result for a model as one JSON string, without items for the user."""
    items = _with_structured(result)
    return json_text("\n".join(in_text(item) for item in items if not for_user_alone(item)))


def _with_structured(result: Json) -> list[Any]:
    """Return the content of a result, with its structured content unless an item repeats it."""
    content, structured = content_of(result), result.get("structuredContent")
    if structured is None or any(_repeats(item, structured) for item in content):
        return [*content]
    text = json.dumps(structured, ensure_ascii=False)
    if "NaN" in text or "Infinity" in text:
        # Python reads and writes these, but they are not JSON.
        text = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)
    return [*content, _for_assistant(text)]


def _repeats(item: object, structured: Any) -> bool:
    """Return whether a content item gives the model the same data as the structured content.

    SDKs put the plain value of a tool under `result`, because structured content is an object.
    """
    text = member(item, "text")
    if not isinstance(text, str) or for_user_alone(item):
        return False
    if structured == {"result": text}:
        return True
    try:
        return same(json.loads(text), structured)
    except (ValueError, RecursionError):
        return False


def _for_assistant(text: str) -> Json:
    return {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}
