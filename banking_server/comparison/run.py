"""One run of a task in one of the ways, and the runs of a whole comparison."""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import time as TimeOfDay
from pathlib import Path
from typing import Any, Final, TypeVar

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.types import CreateMessageRequestParams, CreateMessageResult, TextContent

from banking_server.agent import Called, ModelUnavailable, RunOutcome
from banking_server.bank.end_state import EndState, read_end_state
from banking_server.chaining import CLIENT_EXTENSION, ChainResult, Outcome
from banking_server.comparison.distractor import distracting_server
from banking_server.comparison.failures import entries, why
from banking_server.comparison.judge import judge
from banking_server.comparison.model_calls import CountingEndpoint
from banking_server.comparison.person import BANK, Person
from banking_server.comparison.record import Measured, conditions
from banking_server.comparison.tasks import Case, Task, cases
from banking_server.comparison.ways import (
    WITH_AGENT,
    WITH_MODEL,
    ClientIgnoringDirectives,
    ClientShowingUserText,
    Way,
    through_agent,
    through_multiplex,
    through_next_tool,
    why_not,
)
from banking_server.host.connect import this_server
from banking_server.server.build import open_bank, utc_now
from banking_server.server.settings import Settings

CLOSED: Final[dict[str, Any]] = {
    "branch_opens": TimeOfDay(0),
    "branch_closes": TimeOfDay(0, 0, 0, 1),
}
"""Settings by which the branch is closed at all times but for a microsecond a day, so that no
result depends on the hour of its run: no setting closes it altogether."""

IN_A_ROW: Final = 3
"""Runs in a row in which the endpoint failed, after which no more are made."""

_CLIENTS: Final[dict[Way, type[Client]]] = {
    Way.TEXT_ONLY: ClientIgnoringDirectives,
    Way.USER_TEXT_ONLY: ClientShowingUserText,
}


@dataclass
class _Story:
    """What a run tells of itself."""

    ended: str
    stopped: bool = True
    """Whether no limit ended it."""
    answer: str | None = None
    unavailable: str | None = None
    transcript: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def bank_server(database: Path) -> StdioServerParameters:
    """Return how to start the bank of one run, on `database`, with its branch closed."""
    hours = {f"BANKING_{name.upper()}": str(value) for name, value in CLOSED.items()}
    server = this_server(database)
    return server.model_copy(update={"env": {**(server.env or {}), **hours}})


async def measure(case: Case, way: Way, endpoint: CountingEndpoint | None) -> Measured:
    """Make one run. `endpoint` is the model, for the ways that need one.

    Raises what the client raises if the server cannot be talked to at all.
    """
    if endpoint is not None:
        endpoint.begin()
    at = utc_now()
    person = Person(case, at)
    with tempfile.TemporaryDirectory(prefix="banking-server-compare-") as folder:
        database = Path(folder) / "bank.db"
        async with AsyncExitStack() as stack:
            client = _CLIENTS.get(way, Client)(
                bank_server(database),
                elicitation_callback=person,
                sampling_callback=_Sampling(endpoint) if way is Way.INFERRED else None,
                extensions=None if way in _CLIENTS else [CLIENT_EXTENSION],
            )
            await stack.enter_async_context(client)
            distractor = Client(distracting_server())
            if way in WITH_AGENT:
                await stack.enter_async_context(distractor)
            began = time.monotonic()
            try:
                story = await _tell(client, distractor, person, way, endpoint)
            except Exception as error:
                # A run that breaks off is a result like any other: the database judges it.
                story = _Story(ended=f"failed: {' '.join(str(error).split())[:200]}")
            seconds = time.monotonic() - began
        end = await _end_state(database)
    verdict = judge(case, end, story.answer, at)
    excused = verdict.right or story.unavailable is not None
    return Measured(
        task=case.task,
        way=way,
        number=case.number,
        words=case.words,
        at=at,
        right=verdict.right,
        wrong=verdict.wrong,
        tried=tuple(person.tried),
        refused=tuple(person.refused),
        failure=None
        if excused
        else why(
            story.transcript,
            ids=_ids(end),
            otherwise=verdict.otherwise,
            refused=bool(person.refused),
            stopped=story.stopped,
        ),
        unavailable=story.unavailable,
        ended=story.ended,
        answer=story.answer,
        calls=len(end.events),
        seconds=round(seconds, 3),
        model_calls=() if endpoint is None else tuple(endpoint.calls),
        transcript=tuple(story.transcript),
        conditions=conditions(way, None if endpoint is None else endpoint.settings),
    )


async def _tell(
    client: Client, distractor: Client, person: Person, way: Way, endpoint: CountingEndpoint | None
) -> _Story:
    if way not in WITH_AGENT:
        if way is Way.NEXT_TOOL:
            chains = await through_next_tool(client, person)
        else:
            chains = await through_multiplex(client, person, way)
        return _of_chains(chains, endpoint)
    assert endpoint is not None  # noqa: S101 - whoever names the runs sees to it
    run = await through_agent(client, distractor, person, endpoint)
    return _Story(
        ended=run.outcome,
        stopped=run.outcome is RunOutcome.ANSWERED,
        answer=run.answer,
        unavailable=run.detail if run.outcome is RunOutcome.MODEL_UNAVAILABLE else None,
        transcript=entries(run.transcript),
    )


def _of_chains(chains: Sequence[ChainResult], endpoint: CountingEndpoint | None) -> _Story:
    replies = [] if endpoint is None else [call.reply for call in endpoint.calls]
    steps = [
        Called("model" if step.level == 1 else "directive", BANK, step)
        for chain in chains
        for step in chain.steps
    ]
    last = chains[-1]
    return _Story(
        ended=last.outcome if last.outcome is Outcome.COMPLETED else last.detail,
        unavailable=None if endpoint is None else endpoint.unavailable,
        transcript=[
            *({"entry": "Inferred", "reply": reply} for reply in replies),
            *entries(steps),
        ],
    )


@dataclass(frozen=True)
class _Sampling:
    """The client's own model, for a server that asks it."""

    endpoint: CountingEndpoint | None

    async def __call__(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        """Answer; with nothing if the endpoint fails, which it has taken note of."""
        assert self.endpoint is not None  # noqa: S101 - declared only for a way with a model
        words = [message.content for message in params.messages]
        asked = [
            {"role": "user", "content": content.text}
            for content in words
            if isinstance(content, TextContent)
        ]
        system = {"role": "system", "content": params.system_prompt or ""}
        try:
            text = (await self.endpoint.complete([system, *asked])).text
        except ModelUnavailable:
            text = ""
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=text),
            model=self.endpoint.model,
        )


async def _end_state(database: Path) -> EndState:
    # As the server had them: the environment of this process did not reach it.
    settings = Settings.model_construct(database=database, **CLOSED)
    async with open_bank(settings, utc_now()) as bank:
        return await read_end_state(bank)


def _ids(end: EndState) -> set[str]:
    return {
        *(entry.account_id for entry in end.entries),
        *(transfer.transfer_id for transfer in end.transfers),
        *(handoff.handoff_id for handoff in end.handoffs),
        *(approval.approval_id for approval in end.approvals),
    }


def plan(tasks: Sequence[Task], ways: Sequence[Way], wordings: int) -> list[tuple[Case, Way]]:
    """Return the runs of the first `wordings` of each task in each way that makes sense for it.

    They are taken in rounds, one wording of each task in each, so that whatever else the machine
    does meanwhile falls on all ways alike. In a round the ways with an agent come one after the
    other, over all tasks: their prompts begin alike, and an endpoint that has the last one in its
    cache reads that only once. The one that comes first, and so finds nothing there, is another
    in each round.
    """
    blocks: list[list[Way]] = [[way] for way in ways if way not in WITH_AGENT]
    blocks.append([way for way in ways if way in WITH_AGENT])
    return [
        (cases(task)[number], way)
        for number in range(wordings)
        for block in blocks
        for task in _turned(tasks, number // max(len(block), 1))
        for way in _turned(block, number)
        if why_not(way, task) is None
    ]


_Item = TypeVar("_Item")


def _turned(items: Sequence[_Item], by: int) -> list[_Item]:
    """Return the items in their order, begun with another one."""
    first = by % max(len(items), 1)
    return [*items[first:], *items[:first]]


async def make(
    runs: Sequence[tuple[Case, Way]],
    endpoint: CountingEndpoint | None,
    on_run: Callable[[Measured], None],
) -> None:
    """Make runs, one after the other, and tell of each.

    Ends early if the endpoint has failed in several in a row: it would in the others too.
    """
    failed = 0
    for case, way in runs:
        run = await measure(case, way, endpoint if way in WITH_MODEL else None)
        on_run(run)
        if way in WITH_MODEL:
            failed = failed + 1 if run.unavailable else 0
        if failed >= IN_A_ROW:
            return


def seconds_left(made: Sequence[Measured], left: Sequence[tuple[Case, Way]]) -> float:
    """Return about how long the runs that are left will take, by those that were made."""
    spent: dict[Way, list[float]] = {}
    for run in made:
        spent.setdefault(run.way, []).append(run.seconds + STARTING)
    means = {way: sum(each) / len(each) for way, each in spent.items()}
    known = [mean for way, mean in means.items() if way in WITH_MODEL] or [*means.values()]
    others = max(known, default=0.0)
    return sum(means.get(way, others) for _, way in left)


STARTING: Final = 1.0
"""Seconds that a run takes before and after what is measured, about."""
