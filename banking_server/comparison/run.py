"""One run of a task in one of the ways, and the runs of a whole comparison."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import CreateMessageRequestParams, CreateMessageResult, TextContent

from banking_server.agent import Endpoint
from banking_server.bank.end_state import read_end_state
from banking_server.bank.rules import is_branch_open
from banking_server.chaining import CLIENT_EXTENSION
from banking_server.comparison.tasks import Case, Task, cases, is_achieved
from banking_server.comparison.ways import (
    WITH_MODEL,
    ClientIgnoringDirectives,
    Customer,
    Spent,
    Way,
    through_agent,
    through_multiplex,
    through_next_tool,
)
from banking_server.host.connect import this_server
from banking_server.server.build import open_bank, utc_now
from banking_server.server.settings import Settings


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


async def measure(case: Case, way: Way, endpoint: Endpoint | None) -> Measured:
    """Make one run. `endpoint` is the model, for the ways that need one.

    Raises what the client raises if the server cannot be talked to at all.
    """
    spent = Spent()

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        assert endpoint is not None  # noqa: S101 - declared only for a way with a model
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
                    ended = await through_next_tool(client, case)
                elif way in (Way.INFERRED, Way.REFERENCED):
                    ended = await through_multiplex(client, case, way, places)
                else:
                    assert endpoint is not None  # noqa: S101 - compare_ways() sees to it
                    ended = await through_agent(client, case, endpoint, spent)
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


async def _is_correct(database: Path, case: Case) -> bool:
    """Judge the run by the database alone."""
    now = utc_now()
    # The defaults, as the server had them: the environment of this process did not reach it.
    async with open_bank(Settings.model_construct(database=database), now) as bank:
        end = await read_end_state(bank)
        return is_achieved(case, end, branch_open=is_branch_open(bank.rules, now))


async def compare_ways(
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
