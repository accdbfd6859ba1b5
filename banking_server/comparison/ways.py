"""The ways to chain tools, and the customer who takes part in each, by script."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from banking_server.agent import Agent, Endpoint, OfferedTool, Toolbox, Usage
from banking_server.chaining import META_KEY, Proposal, call_tool_with_chaining
from banking_server.comparison.tasks import NAMES, Case, Task
from banking_server.tools.transfers import FROM_QUESTION


class Way(StrEnum):
    """How the next tool is found."""

    NEXT_TOOL = "nextTool"
    """The first call is given; the chaining client follows directives. No model."""
    TEXT_ONLY = "text only"
    """The agent on a client that ignores directives: the model finds each step in the text."""
    AGENT = "agent"
    """The recursive agent on the chaining client: the model's steps, and directives followed."""
    INFERRED = "multiplex, inferred"
    """One `multiplex_tools` call; a model infers the arguments."""
    REFERENCED = "multiplex, references"
    """One `multiplex_tools` call; arguments refer to earlier results. No model."""


WITH_MODEL: Final = (Way.TEXT_ONLY, Way.AGENT, Way.INFERRED)


@dataclass
class Spent:
    """What a run has cost so far."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    def add(self, usage: Usage, calls: int = 1) -> None:
        """Add what some replies of the model cost."""
        self.calls += calls
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.estimated |= usage.estimated


class Customer:
    """Answers the bank's questions as the case has it: picks its accounts, and agrees."""

    def __init__(self, case: Case) -> None:
        self._case = case

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answer one question."""
        assert isinstance(params, ElicitRequestFormParams)  # noqa: S101 - all that is declared
        answers: dict[str, Any] = {}
        for name, schema in params.requested_schema["properties"].items():
            options = [option["const"] for option in schema.get("oneOf", ())]
            wanted = ("callback", *self._accounts(params.message))
            answers[name] = next((option for option in wanted if option in options), True)
        return ElicitResult(action="accept", content=answers)

    def _accounts(self, question: str) -> tuple[str, str]:
        case = self._case
        asks_from = FROM_QUESTION in question
        return (case.source, case.target) if asks_from else (case.target, case.source)


class ConsentToAll:
    """The customer's host agrees to every call, so that consent is not what is compared."""

    async def allows(
        self, what: Proposal | OfferedTool, arguments: dict[str, Any] | None = None
    ) -> bool:
        """Agree, to a directive's call as to a model's."""
        return True


class ClientIgnoringDirectives(Client):
    """A client as if it had never heard of the extension."""

    async def call_tool(self, *args: Any, **kwargs: Any) -> CallToolResult:
        """Call the tool, and lose the directive, and the mark of the words about it."""
        result = await super().call_tool(*args, **kwargs)
        content = [block.model_copy(update={"meta": None}) for block in result.content]
        kept = {key: value for key, value in (result.meta or {}).items() if key != META_KEY}
        return result.model_copy(update={"content": content, "meta": kept or None})


async def through_next_tool(client: Client, case: Case) -> str:
    """Follow directives from a given first call; return how the last chain ended."""
    arguments = {"fromAccountId": case.source, "toAccountId": case.target, "amount": case.amount}
    chain = await call_tool_with_chaining(
        client, "prepare_money_transfer", arguments, consent=ConsentToAll()
    )
    if case.task is Task.TRANSFER:
        # No rule of the bank says that a transfer must be confirmed, so no directive leads there.
        transfer = (chain.steps[0].result.structured_content or {})["transferId"]
        chain = await call_tool_with_chaining(
            client,
            "confirm_or_cancel_money_transfer",
            {"transferId": transfer, "action": "confirm"},
            consent=ConsentToAll(),
        )
    return chain.outcome


async def through_agent(client: Client, case: Case, endpoint: Endpoint, spent: Spent) -> str:
    """Let the agent do it, by the customer's words; return how its run ended."""
    toolbox = await Toolbox.gather({"bank": client})
    agent = Agent(endpoint, toolbox, consent=ConsentToAll())
    run = await agent.ask(case.words)
    spent.add(run.usage, run.model_calls)
    return run.outcome


async def through_multiplex(client: Client, case: Case, way: Way, places: Sequence[str]) -> str:
    """Send one plan to `multiplex_tools`; return how the chain ended.

    `places` are the account ids in the order of `list_accounts`, for the way with references.
    """

    def account(account_id: str) -> Any:
        if way is Way.INFERRED:
            return f"PROMPT_ARGUMENT: the accountId of the account {NAMES[account_id]!r}"
        place = places.index(account_id)
        return {"jmespath": f"[0].structuredContent.accounts[{place}].accountId"}

    prepare = {
        "fromAccountId": account(case.source),
        "toAccountId": account(case.target),
        "amount": case.amount,
    }
    steps: list[tuple[str, dict[str, Any]]] = [
        ("list_accounts", {}),
        ("prepare_money_transfer", prepare),
    ]
    if case.task is Task.TRANSFER:
        transfer: Any = {"jmespath": "[1].structuredContent.transferId"}
        if way is Way.INFERRED:
            transfer = "PROMPT_ARGUMENT: the transferId of the transfer that was prepared"
        confirm = {"transferId": transfer, "action": "confirm"}
        steps.append(("confirm_or_cancel_money_transfer", confirm))
    requests = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(steps, 1)
    ]
    chain = await call_tool_with_chaining(
        client, "multiplex_tools", {"tools": requests}, consent=ConsentToAll()
    )
    return chain.outcome
