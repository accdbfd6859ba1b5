"""The transcript of a request: what happened, whose decision it was, and how it ended."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from banking_server.agent.endpoint import Usage
from banking_server.agent.toolbox import OfferedTool
from banking_server.chaining import Outcome, Step


class RunOutcome(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    """The model's last reply asks for no call: it is for the user."""
    TURN_LIMIT = "turn_limit"
    """The model has replied as often as it may."""
    TIME_LIMIT = "time_limit"
    """The time for the request has run out."""
    CORRECTION_LIMIT = "correction_limit"
    """The model replied too often in a row with what could not be used, or repeated itself."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """The endpoint gave no usable reply."""
    STOPPED = "stopped"
    """The user stopped the request."""


@dataclass(frozen=True)
class ModelReplied:
    """The model was asked, and replied."""

    text: str
    """The text of the reply, unchanged."""
    usage: Usage
    seconds: float


@dataclass(frozen=True)
class Said:
    """What the model told the user in a reply that also asks for a call."""

    text: str


@dataclass(frozen=True)
class Calling:
    """A call was checked and consented to, and is now made."""

    tool: OfferedTool
    arguments: dict[str, Any]
    by: Literal["model", "directive"] = "model"
    """Who decided on the call."""


@dataclass(frozen=True)
class Called:
    """A call was made and brought a result."""

    by: Literal["model", "directive"]
    """Who decided on the call. If it was a directive, the server did, and no model was asked."""
    server: str
    step: Step


@dataclass(frozen=True)
class ChainStopped:
    """A chain was not completed: its next call was not made, or failed."""

    outcome: Outcome
    detail: str


@dataclass(frozen=True)
class Declined:
    """The host did not consent to a call that the model asked for."""

    tool: OfferedTool
    arguments: dict[str, Any]
    nobody: bool = False
    """Whether there was nobody to ask."""


@dataclass(frozen=True)
class Corrected:
    """A reply of the model could not be used, and the model was told why."""

    problem: str


Entry = ModelReplied | Said | Calling | Called | ChainStopped | Declined | Corrected
"""One entry of a transcript. `on_entry` is told of each as it happens."""

OnEntry = Callable[[Entry], Awaitable[None] | None]


@dataclass(frozen=True)
class Run:
    """One request, from the user's words to the end."""

    outcome: RunOutcome
    detail: str
    """The outcome in a sentence for people."""
    answer: str | None
    """The model's last reply, for the user; None unless the outcome is `answered`."""
    transcript: tuple[Entry, ...]
    seconds: float

    @property
    def replies(self) -> tuple[ModelReplied, ...]:
        """The model's replies, each with its tokens and its seconds."""
        return tuple(entry for entry in self.transcript if isinstance(entry, ModelReplied))

    @property
    def usage(self) -> Usage:
        """The tokens of all replies together."""
        return Usage(
            sum(reply.usage.prompt_tokens for reply in self.replies),
            sum(reply.usage.completion_tokens for reply in self.replies),
            any(reply.usage.estimated for reply in self.replies),
        )

    @property
    def calls(self) -> tuple[Called, ...]:
        """The tool calls that were made, in order."""
        return tuple(entry for entry in self.transcript if isinstance(entry, Called))

    def report(self) -> str:
        """Say how the run ended and what had happened by then, for people."""
        return f"{self.detail} {what_happened(self.transcript)}"


def what_happened(transcript: Sequence[Entry]) -> str:
    """Say which calls were made, who decided on each, and which one was cut off."""
    done: list[str] = []
    under_way: Calling | None = None
    for entry in transcript:
        if isinstance(entry, Calling):
            under_way = entry
        elif isinstance(entry, Called):
            under_way = None
            whose = "model" if entry.by == "model" else "server's directive"
            failed = ", which failed" if entry.step.result.is_error else ""
            done.append(f"{entry.step.tool} (by the {whose}){failed}")
        elif isinstance(entry, ChainStopped) and entry.outcome is Outcome.FAILED:
            under_way = None
            done.append(entry.detail)
    report = f"Done so far: {'; '.join(done)}." if done else "No tool call was completed."
    if under_way is not None:
        report += (
            f" The call of {under_way.tool.name} was under way: whether it took effect is not "
            "known."
        )
    return report
