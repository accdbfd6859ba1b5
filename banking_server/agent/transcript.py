"""What happened in a request: who decided on each call, what came of it, and how it ended."""

from dataclasses import dataclass, field
from typing import Literal

from banking_server.agent.endpoint import Completion
from banking_server.chaining import Step


@dataclass(frozen=True)
class Said:
    """What the model told the user in a reply that also asks for a call."""

    text: str


@dataclass(frozen=True)
class Called:
    """A call was made and brought a result."""

    by: Literal["model", "directive"]
    """Who decided on the call. If it was a directive, the server did, and no model was asked."""
    server: str
    step: Step


@dataclass(frozen=True)
class NotCalled:
    """A call was not made, or a chain was not completed."""

    reason: str
    """In a sentence for people."""


Entry = Said | Called | NotCalled
"""One entry of a transcript. `on_entry` is told of each as it happens."""


@dataclass
class Run:
    """One request, from the user's words to the end."""

    detail: str = "This was stopped."
    """How it ended, in a sentence for people."""
    answer: str | None = None
    """The model's last reply, for the user; None if there is no answer."""
    transcript: list[Entry] = field(default_factory=list[Entry])
    seconds: float = 0.0
    replies: list[Completion] = field(default_factory=list[Completion])
    """The model's replies, for what they cost."""
    calling: str | None = None
    """The tool of the last call, if it brought no result."""

    @property
    def calls(self) -> list[Called]:
        """The tool calls that were made, in order."""
        return [entry for entry in self.transcript if isinstance(entry, Called)]

    def report(self) -> str:
        """Say how the run ended, which calls were made by then, and which brought no result."""
        made: list[str] = []
        for call in self.calls:
            whose = "model" if call.by == "model" else "server's directive"
            failed = ", which failed" if call.step.result.is_error else ""
            made.append(f"{call.step.tool} (by the {whose}){failed}")
        done = f"Done so far: {'; '.join(made)}." if made else "No tool call was completed."
        done = f"{self.detail} {done}"
        if self.calling is None:
            return done
        unknown = f"The call of {self.calling} was under way"
        return f"{done} {unknown}: whether it took effect is not known."

    def footer(self) -> str:
        """Say who decided on the calls, and what it cost, on one line."""
        mine = sum(called.by == "model" for called in self.calls)
        asked = sum(reply.prompt_tokens for reply in self.replies)
        came = sum(reply.completion_tokens for reply in self.replies)
        return (
            f"[Calls: {mine} by the model, {len(self.calls) - mine} by directives. "
            f"Replies: {len(self.replies)}, {asked} + {came} tokens, {self.seconds:.1f} s]"
        )
