"""The evidence of one run of the client under test, for `client.checks`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tool_chaining_conformance.client.matching import match
from tool_chaining_conformance.client.mock_server import Log, Operation
from tool_chaining_conformance.client.script import Case, ClientScript, Provided
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.judgement import NotApplicable, Untestable
from tool_chaining_conformance.target.channel import TargetFailure, read
from tool_chaining_conformance.target.child_process import wrote_last
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote


def result_in(line: str) -> Json | None:
    """Return the merged result on a line of output: a JSON object with a list `content`.

    Like a message, it may not be nested deeper than `channel.LEVELS`.
    """
    try:
        printed = read(line)
    except TargetFailure:
        return None
    has_content = printed is not None and isinstance(printed.body.get("content"), list)
    return printed.body if printed is not None and has_content else None


@dataclass(frozen=True)
class ClientEnd:
    """How one run of the client ended."""

    exit_code: int | None
    """None if the suite stopped it because its time ran out."""
    output: str
    errors: str
    how: str = ""
    """How it failed, if its exit code does not say so."""

    @property
    def printed(self) -> Json | None:
        """The merged result, if the last line of output is a JSON object with a list `content`."""
        return result_in(self.output.strip().rpartition("\n")[2])

    @property
    def outcome(self) -> str | None:
        """The outcome that the client printed, if it printed one."""
        outcome = (self.printed or {}).get("outcome")
        return outcome if isinstance(outcome, str) else None

    @property
    def ended_well(self) -> bool:
        """Whether it ended with exit code 0. Only then is a missing call evidence."""
        return self.exit_code == 0

    def __str__(self) -> str:
        if self.exit_code is None:
            ended = "the client did not end in time and was stopped"
        else:
            ended = f"the client {self.how or f'exited with code {self.exit_code}'}"
        if self.outcome is not None:
            ended += f" and printed the outcome {quote(self.outcome)}"
        return ended + wrote_last(self.errors)


@dataclass(frozen=True)
class CaseRun:
    """One run of the client, in one case of a script and in one era."""

    script: ClientScript
    case: Case
    era: Era
    log: Log
    other: Log | None
    """The requests to the second mock server, if the script has one."""
    end: ClientEnd
    earlier_chain_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The chain ids of the runs before this one, each with the name of the run."""
    others: Mapping[str, "CaseRun"] = field(default_factory=dict[str, "CaseRun"])
    """All runs of the client in this era, by name."""

    @cached_property
    def made(self) -> Mapping[int, Operation]:
        """The expected calls that the client made, by their numbers in the script."""
        return match(self.case.expect.calls, self.log.operations)

    def not_among(self, expected: int) -> list[Operation]:
        """Return the calls that are none of the first `expected` ones of the script."""
        fine = [call.number for number, call in self.made.items() if number <= expected]
        return [call for call in self.log.operations if call.number not in fine]

    @property
    def surplus(self) -> list[Operation]:
        """The calls that the script does not expect."""
        return self.not_among(len(self.case.expect.calls))

    def missing_capability(self) -> str | None:
        """Return a required capability that the client did not declare, if any."""
        declarations = self.log.client_capabilities()
        for capability in self.script.requires_client:
            if not any(capability in declared for declared in declarations):
                return capability
        return None

    def missing_context(self) -> NotApplicable | None:
        """Return which part of the case's context the client ignores, or None."""
        context, first = self.case.context, self.case.first_call.tool
        if context.cancel and not self.log.waits_for_cancel:
            unless = " or reads no list after the second call" * self.case.list_held
            return NotApplicable(f"the client does not use the cancelUrl of the context{unless}")
        if context.cancel_late and not self.log.cancelled_late:
            return NotApplicable("the client does not use the cancelledUrl of the context")
        if context.answers_after_ms and not self._has_waited(context.answers_after_ms / 1000):
            return NotApplicable("the client does not obey answersAfterMs of the context")
        wanted = 1 + len(context.further_calls or ())
        begun = max((each.at_once for each in self.log.operations if each.tool == first), default=0)
        if context.at_once and begun < wanted:
            return NotApplicable("the client does not begin the chains of the context at once")
        return None

    def _has_waited(self, seconds: float) -> bool:
        """Return whether no follow-up call came sooner than the user's answer could."""
        first = self.case.first_call.tool
        begun, followed = (
            [each.at for each in self.log.operations if (each.tool == first) is is_first]
            for is_first in (True, False)
        )
        return not followed or min(followed) - min(begun) >= seconds

    def missing_witness(self, witness: int) -> NotApplicable | Untestable | None:
        """Return which of the calls 1 to `witness` is missing or unanswered, or None."""
        for number in range(1, witness + 1):
            call, tool = self.made.get(number), self.case.expect.calls[number - 1].tool
            if call is None:
                return self.excuse() or Untestable(
                    f"call {number} ({tool}) was not made. Seen: {name_calls(self.log)}; {self.end}"
                )
            if not call.answered:
                return Untestable(f"call {number} ({tool}) was never answered; {self.end}")
        return None

    def missing_provision(self, provided: Provided) -> NotApplicable | None:
        """Return why another run of the client lacks the evidence for a check, or None."""
        other = self.others.get(provided.case)
        if other is None:
            return NotApplicable(f"the client was not run in the case {provided.case}")
        # A call that was made twice is no other one. Other checks count it.
        made = list(other.made.values())
        made += [
            call
            for call in other.surplus
            if not any(call.is_of(each.tool, each.arguments) for each in made)
        ]
        if len(made) != provided.calls or not other.end.ended_well:
            fine = ". That is allowed: its host may let the model make this call unasked"
            return NotApplicable(
                f"in the case {provided.case}, the client made {name_calls(other.log)}, and not "
                f"{provided.calls}" + ("" if provided.calls else fine)
            )
        return None

    def excuse(self) -> NotApplicable | Untestable | None:
        """Return the reason that excuses a missing call, or None if nothing does."""
        if not self.end.ended_well:
            return Untestable(str(self.end))
        if self.end.outcome == "declined" and not self.surplus:
            # Row 9 of the table of outcomes: the policy of a client may be stricter than another's.
            reason = "the client declines the call: by its user, or by its own rules"
            refused = self.case.context.consent != "grant"
            return NotApplicable(reason) if refused else Untestable(reason)
        return None


def name_calls(log: Log) -> str:
    """Return the calls that a mock server received, as text."""
    calls = log.operations
    if not calls:
        return "no calls"
    names = ", ".join(f"{call.tool} {quote(call.arguments)}" for call in calls[:8])
    more = f" and {len(calls) - 8} more" if len(calls) > 8 else ""
    return f"{len(calls)} {'call' if len(calls) == 1 else 'calls'}: {names}{more}"
