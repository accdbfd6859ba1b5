"""What one run of the client under test left behind, to be judged by `client.checks`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from banking_server.conformance.client.mock_server import Log, Operation
from banking_server.conformance.client.script import Case, ClientScript
from banking_server.conformance.message import Json
from banking_server.conformance.target.child_process import last_words
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import shown


@dataclass(frozen=True)
class ClientEnd:
    """How one run of the client ended."""

    exit_code: int | None
    """None if it was stopped because its time ran out."""
    output: str
    errors: str

    @property
    def printed(self) -> Json | None:
        """The merged result, if the last line of output is a JSON object with a list `content`."""
        lines = self.output.strip().splitlines()
        try:
            printed = json.loads(lines[-1]) if lines else None
        except ValueError:
            return None
        if not isinstance(printed, dict) or not isinstance(printed.get("content"), list):
            return None
        return printed

    @property
    def went_on(self) -> bool:
        """Whether it came to its own end: only then does a call that was not made say anything."""
        return self.exit_code == 0

    def __str__(self) -> str:
        if self.exit_code is None:
            ended = "the client did not end in time and was stopped"
        else:
            ended = f"the client exited with code {self.exit_code}"
        words = last_words(self.errors)
        return ended + (f"; its last words: {words}" if words else "")


@dataclass(frozen=True)
class CaseRun:
    """One run of the client, in one case of a script and in one era."""

    script: ClientScript
    case: Case
    era: Era
    log: Log
    other: Log | None
    """What the second mock server saw, if the script has one."""
    end: ClientEnd
    earlier_chain_ids: Mapping[str, str]
    """The chain ids of the runs before this one, each with the name of the run."""

    @property
    def name(self) -> str:
        """The scenario and the case."""
        return f"{self.script.scenario}/{self.case.name}"

    def call(self, number: int) -> Operation | None:
        """Return call `number`, or None if the expected tool was not called at that place."""
        operations = self.log.operations
        expected = self.case.expect.calls[number - 1]
        if len(operations) < number or operations[number - 1].tool != expected.tool:
            return None
        return operations[number - 1]

    def missing_capability(self) -> str | None:
        """Return a capability that the script requires and the client did not declare, if any."""
        declarations = self.log.client_capabilities()
        for capability in self.script.requires_client:
            if not any(capability in declared for declared in declarations):
                return capability
        return None

    def missing_witness(self, witness: int) -> str | None:
        """Say which of the calls 1 to `witness` was not made or not answered, if one was not."""
        for number in range(1, witness + 1):
            call, tool = self.call(number), self.case.expect.calls[number - 1].tool
            if call is None:
                return (
                    f"call {number} ({tool}) was never made, so nothing can be said about "
                    f"what comes after it; {self.calls_made()}; {self.end}"
                )
            if not call.answered:
                return f"call {number} ({tool}) was never answered; {self.end}"
        return None

    def calls_made(self) -> str:
        """Name the calls that were made, for people."""
        return name_calls(self.log)


def name_calls(log: Log) -> str:
    """Name the calls that a mock server received, for people."""
    calls = log.operations
    if not calls:
        return "no calls"
    names = ", ".join(f"{call.tool} {shown(call.arguments)}" for call in calls[:8])
    more = f" and {len(calls) - 8} more" if len(calls) > 8 else ""
    return f"{len(calls)} calls: {names}{more}"
