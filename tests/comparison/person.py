"""The customer, by script: agrees to what they asked for, and to nothing else."""

from collections.abc import Mapping
from typing import Any

from mcp.types import ElicitResult

from banking_server.bank.money import format_money
from banking_server.tools.transfers.words import FROM_QUESTION, TO_QUESTION
from tool_chaining import ConsentPolicy, Proposal, Step

from ..kit import words
from .tasks import NAMES, Case, Task


class Person(ConsentPolicy):
    """The customer of one case: hosts ask them for consent, and the bank its questions."""

    trusts_hints = True

    def __init__(self, case: Case) -> None:
        self.case = case
        self.allowed: set[str] | None = None
        """The tools that the model has."""
        self.refused: list[str] = []
        """What they did not agree to."""
        self.steps: list[dict[str, Any]] = []
        """The calls that were made, each with who decided on it."""
        self._approval_requested = False

    @property
    def _expects_agent(self) -> bool:
        """The branch is closed, so that an approval, once it is requested, takes an agent."""
        return self.case.task is Task.LOCKED or self._approval_requested

    async def allows(self, proposal: Proposal) -> bool:
        """Say whether a call is what was asked for, the model's or a directive's."""
        agrees = self._agrees(proposal.tool.name, proposal.arguments)
        if not agrees:
            self.refused.append(f"{proposal.tool.name}: {proposal.arguments}")
        return agrees

    allows_again = allows

    def show_step(self, step: Step) -> None:
        """Keep a call that was made."""
        by = "first call" if step.level == 1 else "directive"
        self.steps.append({"by": by, "tool": step.tool, "arguments": step.arguments})

    async def on_question(self, context: Any, params: Any) -> ElicitResult:
        """Answer one question of the bank's; an `elicitation_callback` of the client."""
        (name, schema), *_ = params.requested_schema["properties"].items()
        answer = self._answer(params.message, schema)
        if answer is None:
            self.refused.append(params.message)
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={name: answer})

    def _answer(self, question: str, schema: Mapping[str, Any]) -> str | bool | None:
        offered = [option["const"] for option in schema.get("oneOf", ())]
        if not offered:
            return self._is_asked_for(question) or None
        accounts = {FROM_QUESTION: self.case.source, TO_QUESTION: self.case.target}
        wanted = [account for asked, account in accounts.items() if asked in question]
        if self._expects_agent:
            wanted.append(self.case.connection)
        return next((answer for answer in wanted if answer in offered), None)

    def _is_asked_for(self, question: str) -> bool:
        """Say whether a transfer that is to be confirmed is the one: its amount and accounts."""
        source, target = NAMES[self.case.source], NAMES[self.case.target]
        named = (format_money(self.case.amount, "USD"), f"from {source}", f"to {target}")
        places = [question.find(part) for part in named]
        return -1 not in places and places == sorted(places)

    def _agrees(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        match tool:
            case words.PREPARE:
                # For what is missing the bank asks.
                return (
                    arguments.get("fromAccountId") in (None, self.case.source)
                    and arguments.get("toAccountId") in (None, self.case.target)
                    and _as_number(arguments.get("amount")) == self.case.dollars
                    and arguments.get("scheduledDate") is None
                )
            case words.CONFIRM:
                # Which transfer it is, and whether it is the one, the bank asks in its own form.
                return arguments.get("action") == "confirm"
            case words.HANDOFF:
                return self._expects_agent
            case words.CHOICE:
                return self._expects_agent and arguments.get("choice") == self.case.connection
            case words.APPROVAL:
                self._approval_requested = self.case.task is Task.THRESHOLD
                return self._approval_requested
            case "multiplex_tools":
                steps = [step["params"] for step in arguments["tools"]]
                return all(self._agrees(one["name"], one.get("arguments", {})) for one in steps)
        return tool in (words.ACCOUNTS, words.BALANCE, words.STATEMENT)


def _as_number(value: object) -> float | None:
    """Return an amount as a person reads it: small models write numbers as texts."""
    try:
        return float(str(value))
    except ValueError:
        return None
