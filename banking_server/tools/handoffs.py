"""The tools for a handoff to a customer service agent."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, cast

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import handoffs as bank_handoffs
from banking_server.bank.handoffs import (
    ChoiceRecorded,
    HandoffOpened,
    HandoffSeen,
)
from banking_server.bank.models import Handoff
from banking_server.tools.asking import Option, Pick, picker
from banking_server.tools.calling import asks_by_form, current_call, elicit
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import Structured, refusal_of, result, text
from banking_server.tools.scopes import READ_SCOPE
from banking_server.tools.views.offering import HANDOFF

Choice = Literal["realtime", "callback"]

OPTIONS = (
    Option("realtime", "Speak to an agent now"),
    Option("callback", "Be called back"),
)


class HandoffOut(Structured):
    """A handoff to a customer service agent."""

    status: Literal["open", "claimed"] = Field(description="claimed: an agent has taken it.")
    handoff_id: str
    reason: str
    choice: Choice | None = Field(
        default=None, description="How the customer wants to be connected; missing: not chosen yet."
    )
    choices: list[Choice] | None = Field(
        default=None, description="What the customer can choose, while nothing is chosen."
    )
    created_at: datetime


async def ask_how_to_connect(reason: str | None) -> Elicit[Pick] | None:
    """Ask how to connect, unless the customer chose for an open handoff of the same reason."""
    bank, call = current_call()
    handoff = await bank_handoffs.find_open_handoff(bank, call.customer_id, reason)
    if handoff is not None and handoff.choice is not None:
        return None
    return elicit(
        "A customer service agent can help you with this. How would you like to be connected?",
        picker("connection", OPTIONS),
    )


_NOT_ASKED: Final[Any] = None


def may_ask(_: dict[str, Any], ctx: Context[Any, Any]) -> bool:
    """Return whether this client is asked by a form."""
    return asks_by_form(ctx)


@bank_tool(
    title="Request Agent Handoff",
    scope=READ_SCOPE,
    may_ask=may_ask,
    view=HANDOFF,
)
async def request_agent_handoff(
    connection: Annotated[ElicitationResult[Any], Resolve(ask_how_to_connect)] = _NOT_ASKED,
    reason: Annotated[
        str | None,
        Field(description="Why the customer needs an agent, in a sentence for the agent."),
    ] = None,
) -> Annotated[CallToolResult, HandoffOut]:
    """Hand the customer over to a human customer service agent, who can speak with them now or
    call them back. Asking again for the same reason, or about the same account or transfer,
    gives the same handoff."""
    bank, call = current_call()
    picked = connection.data if isinstance(connection, AcceptedElicitation) else None
    choice = cast(Choice, picked.picked) if isinstance(picked, Pick) else None
    outcome = await bank_handoffs.open_handoff(bank, call, reason=reason, choice=choice)
    if not isinstance(outcome, HandoffOpened):
        return refusal_of(outcome)
    return _answer(outcome)


@bank_tool(title="Process Agent Handoff Choice", scope=READ_SCOPE)
async def process_agent_handoff_choice(
    handoffId: Annotated[str, Field(description="The handoffId that request_agent_handoff gave.")],
    choice: Annotated[
        Choice,
        Field(description="realtime: speak to an agent now. callback: be called back."),
    ],
) -> Annotated[CallToolResult, HandoffOut]:
    """Record how the customer wants to be connected with the agent, once they have said so."""
    bank, call = current_call()
    outcome = await bank_handoffs.choose(bank, call, handoffId, choice)
    if not isinstance(outcome, ChoiceRecorded):
        return refusal_of(outcome)
    return _answer(outcome)


@bank_tool(title="Look at Handoff", scope=READ_SCOPE, read_only=True, for_views=True)
async def look_at_handoff(
    handoffId: Annotated[
        str | None, Field(description="The id that request_agent_handoff gave.")
    ] = None,
    reason: Annotated[
        str | None, Field(description="The reason of an open handoff, if its id is not known.")
    ] = None,
) -> Annotated[CallToolResult, HandoffOut]:
    """Get the status of a handoff, for the view that shows it: whether an agent has taken it."""
    bank, call = current_call()
    outcome = await bank_handoffs.look_at_handoff(bank, call, handoff_id=handoffId, reason=reason)
    if not isinstance(outcome, HandoffSeen):
        return refusal_of(outcome)
    return result(_message(outcome.handoff), _handoff(outcome.handoff))


def _answer(outcome: HandoffOpened | ChoiceRecorded) -> CallToolResult:
    handoff = outcome.handoff
    return result(
        _message(handoff),
        _handoff(handoff),
        more=[] if handoff.choice else [text(_how_to_choose(handoff), "assistant")],
        then=next_step(outcome),
    )


def _handoff(handoff: Handoff) -> HandoffOut:
    return HandoffOut(
        status=handoff.status,
        handoff_id=handoff.handoff_id,
        reason=handoff.reason,
        choice=handoff.choice,
        choices=None if handoff.choice else ["realtime", "callback"],
        created_at=handoff.created_at,
    )


def _message(handoff: Handoff) -> str:
    reference = f"Your reference is {handoff.handoff_id}."
    if handoff.status == "claimed":
        return f"A customer service agent has taken this over. {reference}"
    match handoff.choice:
        case "realtime":
            return (
                f"A customer service agent will speak with you as soon as one is free. {reference}"
            )
        case "callback":
            return f"A customer service agent will call you back. {reference}"
        case None:
            return (
                "A customer service agent can help you with this. Would you like to speak to an "
                f"agent now, or be called back? {reference}"
            )


def _how_to_choose(handoff: Handoff) -> str:
    return (
        "When the customer has chosen, call process_agent_handoff_choice with handoffId "
        f"{handoff.handoff_id!r} and choice 'realtime' (speak to an agent now) or "
        "'callback' (be called back)."
    )
