"""The ways to chain tools."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from mcp import Client
from mcp.types import CallToolResult, ContentBlock

from banking_server.agent import Agent, Endpoint, Run, Toolbox
from banking_server.chaining import META_KEY, ChainResult, call_tool_with_chaining
from banking_server.chaining.content import for_user, on_the_wire, without_next_step
from banking_server.comparison.distractor import DISTRACTOR
from banking_server.comparison.person import BANK, FollowUps, Person
from banking_server.comparison.tasks import DIRECTED, POSTED, QUESTIONS, Case, Task
from banking_server.comparison.wordings import NAMES


class Way(StrEnum):
    """How the next tool is found."""

    NEXT_TOOL = "nextTool"
    """The calls that the customer's words ask for are given; the chaining client follows
    directives. No model."""
    REFERENCED = "multiplex, references"
    """One `multiplex_tools` call; arguments are found in earlier results. No model."""
    AGENT = "agent"
    """The recursive agent on the chaining client: the model's steps, and directives followed."""
    TEXT_ONLY = "text only"
    """The agent on a client that ignores directives: the model reads what the server says of the
    next step to models."""
    USER_TEXT_ONLY = "user's text only"
    """The same, without the server's words for models: the model reads what the user is told."""
    INFERRED = "multiplex, inferred"
    """One `multiplex_tools` call; a model infers the arguments from the customer's words."""


WITH_AGENT: Final = (Way.AGENT, Way.TEXT_ONLY, Way.USER_TEXT_ONLY)
WITH_MODEL: Final = (*WITH_AGENT, Way.INFERRED)


def why_not(way: Way, task: Task) -> str | None:
    """Return why a way makes no sense for a task, in a sentence; None if it does."""
    if task in QUESTIONS and way is not Way.AGENT:
        return "a question takes an answer in words, and the bank directs nothing: only the agent"
    if way is Way.NEXT_TOOL and task not in DIRECTED:
        return "the bank names no next step here, so there is no directive to follow"
    return None


def left_out(tasks: Sequence[Task], ways: Sequence[Way]) -> list[str]:
    """Return which of these ways are left out in which of these tasks, by their reasons."""
    reasons: dict[str, list[str]] = {}
    for task in tasks:
        for way in ways:
            reason = why_not(way, task)
            if reason is not None:
                reasons.setdefault(reason, []).append(f"{way} ({task})")
    return [f"{', '.join(what)}: {reason}" for reason, what in reasons.items()]


class ClientIgnoringDirectives(Client):
    """A client as if it had never heard of the extension, nor of audiences: it shows the model all.

    With `for_user_only`, what the server says to models is lost too, and only what the user is told
    is left.
    """

    for_user_only = False

    async def call_tool(self, *args: Any, **kwargs: Any) -> CallToolResult:
        """Call the tool, and lose the directive, and all marks of the content."""
        result = await super().call_tool(*args, **kwargs)
        kept = {key: value for key, value in (result.meta or {}).items() if key != META_KEY}
        structured = result.structured_content
        return result.model_copy(
            update={
                "content": [
                    block.model_copy(update={"meta": None, "annotations": None})
                    for block in result.content
                    if not self.for_user_only or _is_for_user(block)
                ],
                "structured_content": without_next_step(structured)
                if self.for_user_only
                else structured,
                "meta": kept or None,
            }
        )


class ClientShowingUserText(ClientIgnoringDirectives):
    """The same, for the way `user's text only`."""

    for_user_only = True


def _is_for_user(block: ContentBlock) -> bool:
    return for_user(on_the_wire(block))


async def through_agent(
    client: Client, distractor: Client, person: Person, endpoint: Endpoint
) -> Run:
    """Let the agent do it, by the customer's words."""
    toolbox = await Toolbox.gather({BANK: client, DISTRACTOR: distractor})
    return await Agent(endpoint, toolbox, consent=person).ask(person.case.words)


async def through_next_tool(client: Client, person: Person) -> list[ChainResult]:
    """Make the calls that the words ask for, and follow the directives that come."""
    case = person.case
    arguments = {"fromAccountId": case.source, "toAccountId": case.target, "amount": case.amount}
    chains = [await _chain(client, person, "prepare_money_transfer", arguments)]
    if case.task in POSTED:
        # No rule of the bank says that a transfer must be confirmed, so no directive leads there.
        prepared = chains[0].steps[0].result.structured_content or {}
        confirm = {"transferId": prepared["transferId"], "action": "confirm"}
        chains.append(await _chain(client, person, "confirm_or_cancel_money_transfer", confirm))
    return chains


async def through_multiplex(client: Client, person: Person, way: Way) -> list[ChainResult]:
    """Send one plan to `multiplex_tools`, and follow the directive that it may end in."""
    plan = _with_prompts(person.case) if way is Way.INFERRED else _with_references(person.case)
    requests = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(plan, 1)
    ]
    return [await _chain(client, person, "multiplex_tools", {"tools": requests})]


async def _chain(
    client: Client, person: Person, tool: str, arguments: dict[str, Any]
) -> ChainResult:
    return await call_tool_with_chaining(client, tool, arguments, consent=FollowUps(person))


def _with_references(case: Case) -> Sequence[tuple[str, dict[str, Any]]]:
    """The plan whose author knows the accounts' names and the amount."""

    def account(account_id: str) -> dict[str, str]:
        name = NAMES[account_id]
        found = f"[0].structuredContent.accounts[?accountName=='{name}'].accountId | [0]"
        return {"jmespath": found}

    return _plan(
        case,
        {
            "fromAccountId": account(case.source),
            "toAccountId": account(case.target),
            "amount": case.amount,
        },
        {"jmespath": "[1].structuredContent.transferId"},
    )


def _with_prompts(case: Case) -> Sequence[tuple[str, dict[str, Any]]]:
    """The plan for any transfer: the model finds what is to be moved in the customer's words."""

    def inferred(what: str) -> str:
        return f"PROMPT_ARGUMENT: {what}. The customer says: {case.words}"

    prepare = {
        "fromAccountId": inferred("the accountId of the account to take the money from"),
        "toAccountId": inferred("the accountId of the account to send the money to"),
        "amount": inferred("the amount to transfer, as a number"),
    }
    if not case.source_said:
        del prepare["fromAccountId"]  # The bank asks for it.
    transfer = "PROMPT_ARGUMENT: the transferId of the transfer that was prepared"
    return _plan(case, prepare, transfer)


def _plan(
    case: Case, prepare: dict[str, Any], transfer: object
) -> Sequence[tuple[str, dict[str, Any]]]:
    confirm = {"transferId": transfer, "action": "confirm"}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("list_accounts", {}),
        ("prepare_money_transfer", prepare),
    ]
    if case.task in POSTED:
        steps.append(("confirm_or_cancel_money_transfer", confirm))
    return steps
