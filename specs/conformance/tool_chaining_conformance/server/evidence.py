"""Evidence: what a server did, as input of the checks. Only the checks judge it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tool_chaining_conformance.message import Json, WireMessage, within
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.report.judgement import NotApplicable, Untestable
from tool_chaining_conformance.server.reading import PARTS, Member, SeenDirective, directive_of
from tool_chaining_conformance.server.ways import EMITS, PROVENANCE, REFUSED, Way
from tool_chaining_conformance.target.connection import ToolCall
from tool_chaining_conformance.target.era import Era

NO_INTERMEDIARY: Final = NotApplicable("no step is about an intermediary")


@dataclass(frozen=True)
class Evidence:
    """Something that a server did."""

    step: str
    """The step of the scenario where it occurred."""
    messages: Sequence[WireMessage]
    """Its messages."""

    unseen: ClassVar[Untestable | NotApplicable] = Untestable(
        "no call returned a directive that would show it"
    )
    """The reason of a check that found no evidence of this kind."""
    calls_tools: ClassVar[bool] = True
    """Whether it takes a tool call, and so a scenario that allows one."""

    @property
    def subject(self) -> "Subject":
        """What the checks are registered for that judge it."""
        return type(self)


@dataclass(frozen=True)
class Greeting(Evidence):
    """The reply to `server/discover` or `initialize`."""

    era: Era
    capabilities: Json
    server_info: Json

    unseen = Untestable("the server did not answer server/discover or initialize")
    calls_tools = False

    @property
    def settings(self) -> list[Any]:
        """The settings under the extension's identifier, in each place of the era."""
        places = ["extensions"] if self.era is Era.MODERN else ["extensions", "experimental"]
        found = [within(self.capabilities, place) for place in places]
        return [place[IDENTIFIER] for place in found if IDENTIFIER in place]


@dataclass(frozen=True)
class OtherResult(Evidence):
    """A result of a method other than `tools/call`."""

    method: str
    carries_directive: bool

    unseen = Untestable("the server answered no method other than tools/call")
    calls_tools = False


@dataclass(frozen=True)
class InterimResult(Evidence):
    """An interim result: the tool asks for input, or continues as a task."""

    directive: SeenDirective | None

    unseen = NotApplicable(
        "no call gave an interim result: one that asks the user (2026-07-28), or a task"
    )


@dataclass(frozen=True)
class ResultWithDirective(Evidence):
    """A complete result with a directive, well-formed or not."""

    directive: SeenDirective
    content: Sequence[Json]
    """Its content items."""
    declared: bool
    """Whether the client that made the call had declared the extension."""
    structured: Json
    """Its structured content; empty if it has none."""
    target: Json | None
    """The tool that the directive names, as `tools/list` shows it to this caller right afterwards;
    None if it is not listed."""
    listed: Sequence[str]
    """The names of all tools in that list."""
    intermediary: bool = False
    """Whether the server passes on the tools of others, as the scenario says."""


@dataclass(frozen=True)
class PassedOn(Evidence):
    """A result of an intermediary that followed the call's chain by itself."""

    directive: SeenDirective | None
    content: Sequence[Json]
    structured: Json
    listed: Mapping[str, Json]
    """The tools of the intermediary, by their names."""

    unseen = NO_INTERMEDIARY


@dataclass(frozen=True)
class Withheld(PassedOn):
    """A result of an intermediary that may not hand on the directive of a server behind it."""


@dataclass(frozen=True)
class Repetition(Evidence):
    """A call that was repeated in a way that must not change its result."""

    way: Way
    first: ToolCall
    """The call to compare it with."""
    again: ToolCall
    differs: frozenset[Member]
    """The members that differed in every repetition, and were equal in every repetition of the call
    that it is compared with."""

    unseen = Untestable("no step that ends in a directive has `repeatable: true`")

    @property
    def subject(self) -> "Subject":
        """The check that compares the two calls."""
        return self.way.check

    @staticmethod
    def compared(check: str) -> Collection[str]:
        """Return the parts of the result that must be equal for a check."""
        parts = {
            PROVENANCE: PARTS,
            REFUSED: ("refusal",),
            EMITS: ("refusal", "tool", "arguments"),
        }
        return parts.get(check, ("refusal", "tool", "arguments", "words"))


@dataclass(frozen=True)
class FollowedChain(Evidence):
    """A chain that was followed as far as the scenario allows."""

    calls: Sequence[ToolCall]
    """The calls that were made, in their order."""

    unseen = Untestable("no chain was followed to its end; `follow: true` on a step allows it")

    @property
    def directive(self) -> SeenDirective | None:
        """The directive on the last call, which was not followed; None if the chain ended."""
        return directive_of(self.calls[-1].final)


Subject = type[Evidence] | str
"""What a check judges: a type of evidence, or the repetitions that are compared for this check."""


@dataclass(frozen=True)
class Missing:
    """Evidence that a step did not show."""

    step: str
    subjects: Sequence[Subject]
    judged: Untestable | NotApplicable
    """Untestable if the step should have shown it; not applicable if it was not allowed to."""


@dataclass(frozen=True)
class Problem:
    """A note for the report: a reason why some checks were not made, or another fact."""

    sentence: str
    dropped: bool = False
    """Whether the server says that it left a directive out."""


Observation = Evidence | Missing | Problem
