"""The ways to chain tools."""

import re
from enum import StrEnum
from typing import Any

from mcp import Client
from mcp.types import CallToolResult

from banking_server.client.agent.endpoint import Endpoint
from banking_server.client.agent.loop import Agent, Bounds
from banking_server.client.agent.toolbox import Toolbox
from tool_chaining import META_KEY, Follower, Step
from tool_chaining.content import for_user, on_the_wire, without_next_step

from ..kit.servers import tool_call
from ..kit.words import ACCOUNTS, CONFIRM, PREPARE
from .person import Directed, Person
from .tasks import NAMES, Case, Task


class Way(StrEnum):
    """How the next tool is found."""

    NEXT_TOOL = "nextTool"
    """The first call is given by hand; the chaining client follows directives. No model."""
    REFERENCED = "multiplex, references"
    """One `multiplex_tools` call, given by hand; expressions find the arguments. No model. Here and
    in `INFERRED`, a call of its own confirms a transfer: the bank asks, and no plan can wait."""
    AGENT = "agent"
    """The agent on the chaining client: the model's steps, and directives followed."""
    TEXT_ONLY = "text only"
    """The agent where no directive is followed: the model reads the server's words for models,
    which name the next call, so this tests copying more than judgement."""
    USER_TEXT_ONLY = "user's text only"
    """The same, and the model reads only what the user is told."""
    INFERRED = "multiplex, inferred"
    """One `multiplex_tools` call, given by hand; a model infers the arguments from the words, and
    nobody is asked between such an argument and its call."""


NO_HURRY = Bounds(seconds=3600)
"""A machine that does other work, too, ends no run."""

WITH_AGENT = (Way.AGENT, Way.TEXT_ONLY, Way.USER_TEXT_ONLY)


class TextOnly(Client):
    """A client as if it had never heard of the extension, nor of audiences: the model sees all."""

    for_user_only = False

    async def call_tool(self, *args: Any, **kwargs: Any) -> CallToolResult:
        """Call the tool, and lose the directive, and all marks of the content."""
        result = await super().call_tool(*args, **kwargs)
        content = [
            block.model_copy(update={"meta": None, "annotations": None})
            for block in result.content
            if not self.for_user_only or for_user(on_the_wire(block))
        ]
        kept = {name: value for name, value in (result.meta or {}).items() if name != META_KEY}
        structured = result.structured_content
        if self.for_user_only:
            structured = without_next_step(structured)
        changed = {"content": content, "structured_content": structured, "meta": kept or None}
        return result.model_copy(update=changed)


class UserTextOnly(TextOnly):
    """The same, and what the server says to models is lost too."""

    for_user_only = True


CLIENTS = {Way.TEXT_ONLY: TextOnly, Way.USER_TEXT_ONLY: UserTextOnly}
"""Of the ways in which no directive is followed."""


async def take(way: Way, client: Client, person: Person, endpoint: Endpoint) -> dict[str, Any]:
    """Take one way to what the customer wants; return how it ended, the answer, and the calls."""
    case, answer = person.case, None
    if way in WITH_AGENT:
        toolbox = await Toolbox.gather({"bank": client}, trusted=["bank"])
        agent = Agent(endpoint, toolbox, consent=person, bounds=NO_HURRY)
        told = await agent.ask(case.words)
        ended, answer = told.detail, told.answer
        steps: list[tuple[str, Step]] = [(called.by, called.step) for called in told.calls]
    else:
        tool, accounts = PREPARE, {"fromAccountId": case.source, "toAccountId": case.target}
        arguments: dict[str, Any] = {**accounts, "amount": case.dollars}
        if way is not Way.NEXT_TOOL:
            tool, arguments = "multiplex_tools", {"tools": _requests(case, way)}
        follower = Follower(client, consent=Directed(person))
        chain = await follower.call_tool(tool, arguments)
        ended = chain.detail or chain.outcome
        steps = [("directive" if n else "hand", step) for n, step in enumerate(chain.steps)]
        if tool != PREPARE and case.task is Task.TRANSFER:
            # The bank asks before it confirms, so no plan can.
            transfer = re.findall(r"tr_[0-9a-f]{16}", str(chain.steps[-1].result))
            confirm = {"transferId": transfer[-1] if transfer else "", "action": "confirm"}
            confirmed = await follower.call_tool(CONFIRM, confirm)
            ended = confirmed.detail or confirmed.outcome
            steps += [("hand", step) for step in confirmed.steps]
    made = [{"by": by, "tool": one.tool, "arguments": one.arguments} for by, one in steps]
    return {"ended": ended, "answer": answer, "steps": made}


def _referenced(case: Case) -> dict[str, Any]:
    """Return the arguments of a plan whose author knows the accounts' names and the amount."""
    named = "[0].structuredContent.accounts[?accountName=='{}'].accountId | [0]"
    return {
        "fromAccountId": {"jmespath": named.format(NAMES[case.source])},
        "toAccountId": {"jmespath": named.format(NAMES[case.target])},
        "amount": case.dollars,
    }


def _inferred(case: Case) -> dict[str, Any]:
    """Return those of a plan for any transfer: a model finds them in the customer's words."""
    what = {
        "fromAccountId": "the accountId of the account to take the money from",
        "toAccountId": "the accountId of the account to send the money to",
        "amount": "the amount to transfer, as a number",
    }
    return {
        name: f"PROMPT_ARGUMENT: {each}. The customer says: {case.words}"
        for name, each in what.items()
    }


def _requests(case: Case, way: Way) -> list[dict[str, Any]]:
    prepare = _referenced(case) if way is Way.REFERENCED else _inferred(case)
    steps = [(ACCOUNTS, {}), (PREPARE, prepare)]
    return [{**tool_call(*step), "id": number} for number, step in enumerate(steps, 1)]
