"""The same tasks through every way of chaining tools, measured on the same bank.

Each run gets a new server over stdio and a new database, and is judged by what the database holds
afterwards, never by what anybody said. Every figure comes from a run that was made; the model is
whatever endpoint is configured.
"""

import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server import __version__
from banking_server.agent import Agent, Endpoint, OfferedTool, Toolbox, Usage
from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.bank.rules import is_branch_open
from banking_server.chaining import (
    CLIENT_EXTENSION,
    META_KEY,
    Proposal,
    call_tool_with_chaining,
)
from banking_server.host.connect import this_server
from banking_server.server.build import open_bank, utc_now
from banking_server.server.settings import Settings


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


class Task(StrEnum):
    """What is to be achieved."""

    LOCKED = "locked account to recorded handoff"
    TRANSFER = "list, choose, transfer"
    THRESHOLD = "threshold exceeded"


CHECKING, SAVINGS, EVERYDAY = "acc_checking_001", "acc_savings_001", "acc_everyday_001"
NAMES: Final = {
    CHECKING: "Primary Checking",
    SAVINGS: "High Yield Savings",
    EVERYDAY: "Everyday Checking",
}
"""The accounts of the demo data that the tasks use."""


@dataclass(frozen=True)
class Case:
    """One variant of a task, in the customer's words."""

    task: Task
    words: str
    source: str
    target: str
    amount: float


def cases(task: Task) -> list[Case]:
    """Return the variants of a task: other words and amounts, not other seeds of one prompt.

    Where the task is to choose the accounts, the words give their names, elsewhere their ids too.
    """

    def named(account: str) -> str:
        return NAMES[account] if task is Task.TRANSFER else f"{NAMES[account]} ({account})"

    source, targets, amounts = {
        Task.LOCKED: (CHECKING, (SAVINGS, EVERYDAY), (250, 19.99, 75.5, 1200, 40)),
        Task.TRANSFER: (SAVINGS, (EVERYDAY,), (25.5, 310, 42.42, 99.99, 1500)),
        Task.THRESHOLD: (SAVINGS, (EVERYDAY,), (12000, 10000.01, 15500, 20000, 11111.11)),
    }[task]
    wordings = (
        "Please transfer {amount} USD from my {source} account to my {target} account.",
        "Move {amount} dollars from {source} to {target}.",
        "I need {amount} USD in {target}; take it from {source}.",
        "Can you send {amount} from {source} over to {target} for me?",
        "Transfer {amount} to {target}. The money should come from {source}.",
    )
    return [
        Case(
            task,
            wording.format(amount=amount, source=named(source), target=named(target)),
            source,
            target,
            amount,
        )
        for index, (wording, amount) in enumerate(zip(wordings, amounts, strict=True))
        for target in [targets[index % len(targets)]]
    ]


@dataclass(frozen=True)
class Measured:
    """One run."""

    task: Task
    way: Way
    words: str
    correct: bool
    """The database holds what the task asks for, and nothing else."""
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens_estimated: bool
    """The endpoint did not say how many tokens it used."""
    seconds: float
    ended: str
    """How the run says it ended."""


# --- the customer, by script ----------------------------------------------------------------------


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
        taken = "taken from" in question
        return (case.source, case.target) if taken else (case.target, case.source)


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
        """Call the tool, and lose the directive."""
        result = await super().call_tool(*args, **kwargs)
        kept = {key: value for key, value in (result.meta or {}).items() if key != META_KEY}
        return result.model_copy(update={"meta": kept or None})


# --- the ways -------------------------------------------------------------------------------------


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


async def _next_tool(client: Client, case: Case) -> str:
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


async def _agent(client: Client, case: Case, endpoint: Endpoint, spent: Spent) -> str:
    toolbox = await Toolbox.gather({"bank": client})
    agent = Agent(endpoint, toolbox, consent=ConsentToAll(), follow_consent=ConsentToAll())
    run = await agent.ask(case.words)
    spent.add(run.usage, run.model_calls)
    return run.outcome


async def _multiplex(client: Client, case: Case, way: Way, places: Sequence[str]) -> str:
    def account(account_id: str) -> Any:
        if way is Way.INFERRED:
            return f"PROMPT_ARGUMENT: the accountId of the account {NAMES[account_id]!r}"
        return {"$ref": f"#/0/structuredContent/accounts/{places.index(account_id)}/accountId"}

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
        transfer: Any = {"$ref": "#/1/structuredContent/transferId"}
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


# --- one run --------------------------------------------------------------------------------------


async def measure(case: Case, way: Way, endpoint: Endpoint | None) -> Measured:
    """Make one run. `endpoint` is the model, for the ways that need one.

    Raises what the client raises where the server cannot be talked to at all.
    """
    spent = Spent()

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        assert endpoint is not None  # noqa: S101 - declared only where there is one
        words = [message.content for message in params.messages]
        completion = await endpoint.complete(
            [
                {"role": "system", "content": params.system_prompt or ""},
                *(
                    {"role": "user", "content": content.text}
                    for content in words
                    if isinstance(content, TextContent)
                ),
            ]
        )
        spent.add(completion.usage)
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=completion.text),
            model=endpoint.model,
        )

    with tempfile.TemporaryDirectory(prefix="banking-server-compare-") as folder:
        database = Path(folder) / "bank.db"
        kind = ClientIgnoringDirectives if way is Way.TEXT_ONLY else Client
        async with kind(
            this_server(database),
            elicitation_callback=Customer(case),
            sampling_callback=sample if way is Way.INFERRED else None,
            extensions=None if way is Way.TEXT_ONLY else [CLIENT_EXTENSION],
        ) as client:
            places = await _places(client)
            began = time.monotonic()
            try:
                if way is Way.NEXT_TOOL:
                    ended = await _next_tool(client, case)
                elif way in (Way.INFERRED, Way.REFERENCED):
                    ended = await _multiplex(client, case, way, places)
                else:
                    assert endpoint is not None  # noqa: S101 - compare() sees to it
                    ended = await _agent(client, case, endpoint, spent)
            except Exception as error:
                # A run that breaks off is a result like any other: the database judges it.
                ended = f"failed: {error}"[:200]
            seconds = time.monotonic() - began
        return Measured(
            task=case.task,
            way=way,
            words=case.words,
            correct=await _is_correct(database, case),
            model_calls=spent.calls,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            tokens_estimated=spent.estimated,
            seconds=round(seconds, 3),
            ended=ended,
        )


async def _places(client: Client) -> list[str]:
    """Return the account ids in the order of `list_accounts`, as a script's author sees them."""
    listed = await client.call_tool("list_accounts")
    return [account["accountId"] for account in (listed.structured_content or {})["accounts"]]


async def _end_state(
    session: AsyncSession,
) -> tuple[Sequence[Transfer], Sequence[Handoff], Sequence[Approval]]:
    return (
        (await session.exec(select(Transfer))).all(),
        (await session.exec(select(Handoff))).all(),
        (await session.exec(select(Approval))).all(),
    )


async def _is_correct(database: Path, case: Case) -> bool:
    """Judge the end state by the database alone."""
    now = utc_now()
    bank = await open_bank(Settings.model_construct(database=database), now)
    try:
        transfers, handoffs, approvals = await bank.read(_end_state)
        branch_open = is_branch_open(bank.rules, now)
    finally:
        await bank.close()
    if case.task is Task.LOCKED:
        return (
            len(handoffs) == 1
            and case.source in handoffs[0].reason
            and handoffs[0].choice == "callback"
            and not transfers
        )
    if len(transfers) != 1:
        return False
    transfer = transfers[0]
    as_asked = (transfer.from_account_id, transfer.to_account_id, transfer.amount_minor) == (
        case.source,
        case.target,
        round(case.amount * 100),
    )
    if case.task is Task.TRANSFER:
        return as_asked and transfer.status == "posted" and not handoffs
    return (
        as_asked
        and transfer.status == "pending"
        and [approval.status for approval in approvals] == ["requested"]
        and len(handoffs) == (0 if branch_open else 1)
    )


# --- all runs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """All runs of one task in one way: counts, and medians of what a run cost."""

    task: Task
    way: Way
    runs: int
    correct: int
    model_calls: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float


async def compare(
    endpoint: Endpoint | None,
    *,
    runs: int,
    ways: Sequence[Way] = tuple(Way),
    on_run: Callable[[Measured], None] = lambda _: None,
) -> list[Measured]:
    """Make `runs` runs of each task in each way; without an endpoint, only the ways without one.

    They are made in rounds, one run of everything in each, so that whatever else the machine does
    meanwhile falls on all ways alike. A round takes the tasks' next variants. Each run is told to
    `on_run`.
    """
    measured = []
    for number in range(runs):
        for task in Task:
            variants = cases(task)
            for way in ways:
                if way in WITH_MODEL and endpoint is None:
                    continue
                measured.append(await measure(variants[number % len(variants)], way, endpoint))
                on_run(measured[-1])
    return measured


def summarize(measured: Iterable[Measured]) -> list[Summary]:
    """Return one line for each task and way, in the order in which they were run."""
    groups: dict[tuple[Task, Way], list[Measured]] = {}
    for run in measured:
        groups.setdefault((run.task, run.way), []).append(run)
    return [
        Summary(
            task=task,
            way=way,
            runs=len(group),
            correct=sum(run.correct for run in group),
            model_calls=statistics.median(run.model_calls for run in group),
            prompt_tokens=statistics.median(run.prompt_tokens for run in group),
            completion_tokens=statistics.median(run.completion_tokens for run in group),
            seconds=round(statistics.median(run.seconds for run in group), 2),
        )
        for (task, way), group in groups.items()
    ]


def as_json(measured: Sequence[Measured], endpoint: Endpoint | None) -> str:
    """Return every run and the summary as JSON, with what they were measured on."""
    report = {
        "measuredAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "model": None if endpoint is None else endpoint.model,
        "temperature": None if endpoint is None else endpoint.settings.temperature,
        "summary": [asdict(line) for line in summarize(measured)],
        "runs": [asdict(run) for run in measured],
    }
    return json.dumps(report, indent=2)


def as_markdown(measured: Sequence[Measured]) -> str:
    """Return the summary as a Markdown table, and correct runs as a Mermaid chart."""
    lines = [
        "| task | way | correct | model calls | prompt tokens | completion tokens | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    summaries = summarize(measured)
    lines += [
        f"| {line.task} | {line.way} | {line.correct} of {line.runs} | {line.model_calls:g} | "
        f"{line.prompt_tokens:g} | {line.completion_tokens:g} | {line.seconds:g} |"
        for line in summaries
    ]
    ways = [way for way in Way if any(line.way is way for line in summaries)]
    shares = []
    for way in ways:
        group = [line for line in summaries if line.way is way]
        shares.append(100 * sum(line.correct for line in group) / sum(line.runs for line in group))
    names = ", ".join(f'"{way}"' for way in ways)
    return "\n".join(
        [
            *lines,
            "",
            "```mermaid",
            "xychart-beta",
            '    title "Runs that ended as asked, all tasks"',
            f"    x-axis [{names}]",
            '    y-axis "percent" 0 --> 100',
            f"    bar [{', '.join(f'{share:.0f}' for share in shares)}]",
            "```",
        ]
    )
