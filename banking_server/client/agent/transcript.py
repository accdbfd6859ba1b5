"""What happened in a request: who decided on each call, its result, and how the request ended."""

from dataclasses import dataclass, field
from typing import Literal

from tool_chaining import Step


@dataclass(frozen=True)
class Called:
    """A call that returned a result."""

    by: Literal["model", "directive"]
    """Who decided on the call. With a directive it was the server, without asking a model."""
    server: str
    step: Step


@dataclass(frozen=True)
class Note:
    """The model's words with a call, or why a call was not made or a chain not completed."""

    text: str
    """For people."""


Entry = Called | Note
"""One entry of a transcript. `on_entry` gets each as it happens."""


@dataclass
class Run:
    """One request, from the user's words to its end."""

    detail: str = "This was stopped."
    """How it ended, in a sentence for people."""
    answer: str | None = None
    """The model's last reply, for the user; None if there is no answer."""
    transcript: list[Entry] = field(default_factory=list[Entry])
    calling: str | None = None
    """The tool of the last call, if it returned no result."""

    @property
    def calls(self) -> list[Called]:
        """The tool calls that were made, in order."""
        return [entry for entry in self.transcript if isinstance(entry, Called)]

    def report(self) -> str:
        """Say how the run ended, which calls were made until then, and which returned no result."""
        made: list[str] = []
        for call in self.calls:
            whose = "model" if call.by == "model" else "server's directive"
            failed = ", which failed" if call.step.is_error else ""
            made.append(f"{call.step.tool} (by the {whose}){failed}")
        done = f"Done so far: {'; '.join(made)}." if made else "No tool call was completed."
        done = f"{self.detail} {done}"
        if self.calling is None:
            return done
        unknown = f"The call of {self.calling} was under way"
        return f"{done} {unknown}: whether it took effect is not known."
