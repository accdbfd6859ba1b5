"""Runs, each on a new bank and a server of its own, and the file that keeps them: a line each.

A line holds all that was seen: what was said, called and asked of the model, and what the database
held at the end. Nothing is judged here.
"""

import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CreateMessageResult, TextContent

from banking_server import __version__
from banking_server.agent import Completion, Endpoint, Message, ModelSettings, ModelUnavailable
from banking_server.chaining import CLIENT_EXTENSION

from ..kit.bank import World, fill
from .person import Person
from .tasks import Case, Task, cases
from .ways import CLIENTS, WITH_AGENT, WITH_MODEL, Way, through_agent, without_agent

Run = dict[str, Any]
"""One run, as its line holds it."""

STORED = {
    "transfers": "SELECT from_account_id, to_account_id, amount_minor, scheduled_date, status "
    "FROM transfer",
    "handoffs": "SELECT reason, choice FROM handoff",
    "approvals": "SELECT status FROM approval",
    "reports": "SELECT rule FROM compliance_report",
    "calls": "SELECT tool, outcome FROM audit_event ORDER BY event_id",
}
"""What of the database is kept."""


class CountingEndpoint(Endpoint):
    """A model whose replies are kept, with what they cost."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.replies: list[Run] = []
        self.unavailable: str | None = None
        """Why a call brought no reply; None if none failed."""

    async def complete(self, messages: Sequence[Message], **more: Any) -> Completion:
        """Ask for the next message of a conversation, as `Endpoint` does, and keep it."""
        try:
            completion = await super().complete(messages, **more)
        except ModelUnavailable as error:
            self.unavailable = str(error)
            raise
        self.replies.append({**asdict(completion.usage), "text": completion.text})
        return completion

    async def sample(self, context: Any, params: Any) -> CreateMessageResult:
        """Answer a server that asks the client's model; with nothing if the endpoint fails."""
        asked = [{"role": "user", "content": one.content.text} for one in params.messages]
        system = {"role": "system", "content": params.system_prompt or ""}
        try:
            text = (await self.complete([system, *asked])).text
        except ModelUnavailable:
            text = ""
        content = TextContent(type="text", text=text)
        return CreateMessageResult(role="assistant", content=content, model=self.model)


async def make(case: Case, way: Way, settings: ModelSettings | None) -> Run:
    """Make one run. `settings` are the model's, for the ways that need one.

    It is a Sunday: the branch is closed, so that no result depends on the hour of the run. Raises
    SystemExit if the model's endpoint fails: that says nothing about the way.
    """
    person = Person(case)
    run: Run = {"way": way, **asdict(case), "conditions": conditions(settings), "answer": None}
    async with AsyncExitStack() as stack:
        endpoint = None
        if settings is not None and way in WITH_MODEL:
            endpoint = await stack.enter_async_context(CountingEndpoint(settings))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="comparison-"))
        world = World(Path(folder) / "bank.db")
        world.clock.move(days=-1)
        await fill(world.location, world.clock())
        client = CLIENTS.get(way, Client)(
            world.server(),
            elicitation_callback=person.on_question,
            sampling_callback=endpoint.sample if endpoint and way is Way.INFERRED else None,
            extensions=None if way in CLIENTS else [CLIENT_EXTENSION],
        )
        began = time.monotonic()
        try:
            async with client:
                run |= await _tell(client, person, way, endpoint)
        except Exception as error:
            # A run that breaks off is a result like any other: the database judges it.
            run["ended"] = f"failed: {' '.join(str(error).split())[:200]}"
        if endpoint and endpoint.unavailable:
            raise SystemExit(f"The endpoint failed: {endpoint.unavailable}")
        run["seconds"] = round(time.monotonic() - began, 1)
        run["refused"] = person.refused
        run["replies"] = endpoint.replies if endpoint else []
        run["stored"] = {name: world.sql(query) for name, query in STORED.items()}
    return run


async def _tell(client: Client, person: Person, way: Way, endpoint: CountingEndpoint | None) -> Run:
    if way in WITH_AGENT:
        assert endpoint is not None, "an agent needs a model"
        told = await through_agent(client, person, endpoint)
        ended, answer, steps = told.detail, told.answer, [called.step for called in told.calls]
    else:
        chain = await without_agent(client, person, way)
        ended, answer, steps = chain.detail or chain.outcome, None, [*chain.steps]
    made = [{"tool": step.tool, "arguments": step.arguments} for step in steps]
    return {"ended": ended, "answer": answer, "steps": made}


def conditions(settings: ModelSettings | None) -> Run:
    """Return what a run is made under here, besides its task, way and wording."""
    model = settings and settings.model_dump(mode="json", exclude={"url", "key", "insecure"})
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    python = platform.python_version()
    return {"version": __version__, "python": python, "machine": machine, "model": model}


def read(path: Path) -> list[Run]:
    """Return the runs of a file. A last line that was not written to its end is cut off."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        del lines[-1]
    return [json.loads(line) for line in lines]


def plan(ways: Sequence[Way], wordings: int) -> list[tuple[Case, Way]]:
    """Return the runs of the first wordings of each task, in each way.

    The bank directs nothing in a plain transfer, so that there is nothing to measure of `nextTool`.
    One wording of each task is taken in each round, so that whatever else the machine does falls
    on all ways alike; each round begins with another way, as the endpoint's cache helps the others.
    """
    return [
        (case, way)
        for number in range(wordings)
        for case in (cases(task)[number] for task in Task if number < len(cases(task)))
        for way in [*ways[number % len(ways) :], *ways[: number % len(ways)]]
        if (way, case.task) != (Way.NEXT_TOOL, Task.TRANSFER)
    ]


async def make_all(
    path: Path, runs: Sequence[tuple[Case, Way]], settings: ModelSettings | None
) -> None:
    """Make the runs that the file lacks, one after the other, and append each to it at once.

    Raises SystemExit if the endpoint fails, or if the file's runs had other conditions: then it
    would be no comparison.
    """
    path.touch()  # If it cannot be written, before the first run.
    kept = read(path)
    here = conditions(settings)
    for run in kept:
        if run["conditions"] != here:
            raise SystemExit(f"{path} was made under {run['conditions']}, and here it is {here}.")
    done = {(run["task"], run["way"], run["words"]) for run in kept}
    left = [(case, way) for case, way in runs if (case.task, way, case.words) not in done]
    for number, (case, way) in enumerate(left, 1):
        run = await make(case, way, settings)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run, ensure_ascii=False) + "\n")
        print(f"{number} of {len(left)}: {case.task} {case.number}, {way}: {run['ended']}")
