"""Runs, each on a new bank and a server of its own, and the file that keeps them: a line each.

A line holds all that was seen: what was said, called and asked of the model, and what the database
held at the end. Nothing is judged here.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CreateMessageResult, TextContent

from banking_server.client.agent.endpoint import Completion, Endpoint, Message, ModelUnavailable
from banking_server.client.agent.settings import ModelSettings
from tool_chaining import CLIENT_EXTENSION

from ..kit.bank import World, fill
from .person import Person
from .tasks import Case, Task, cases
from .ways import CLIENTS, Way, take

Run = dict[str, Any]
"""One run, as its line holds it."""

STORED = {
    "transfers": "SELECT from_account_id, to_account_id, amount_minor, scheduled_date, status "
    "FROM transfer",
    "handoffs": "SELECT reason, choice FROM handoff",
    "ids": "SELECT transfer_id FROM transfer UNION SELECT handoff_id FROM handoff "
    "UNION SELECT approval_id FROM approval",
    "approvals": "SELECT status FROM approval",
    "reports": "SELECT rule FROM compliance_report",
    "calls": "SELECT tool, outcome FROM audit_event ORDER BY event_id",
}
"""What of the database is kept."""

MAKING = (
    *(":/banking_server", ":/data", ":(top,exclude)banking_server/**.md"),
    *(f"{name}.py" for name in ("person", "runs", "tasks", "ways")),
)
"""The files that decide how a run ends, beside its words."""


_NAMED = re.compile(r"The argument to fill in: arguments\.(\w+)")


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
        cost = {name: getattr(completion, name) for name in ("prompt_tokens", "completion_tokens")}
        self.replies.append({**cost, "text": completion.text})
        return completion

    async def sample(self, context: Any, params: Any) -> CreateMessageResult:
        """Answer a server that asks the client's model; with nothing if the endpoint fails."""
        asked = [{"role": "user", "content": one.content.text} for one in params.messages]
        system = {"role": "system", "content": params.system_prompt or ""}
        try:
            text = (await self.complete([system, *asked])).text
            # Replies come in any order. With the argument's name, a run can be played again.
            self.replies[-1]["argument"] = _NAMED.findall(asked[-1]["content"])[-1]
        except ModelUnavailable:
            text = ""
        content = TextContent(type="text", text=text)
        return CreateMessageResult(role="assistant", content=content, model=self.model)


async def make(case: Case, way: Way, endpoint: CountingEndpoint) -> Run:
    """Make one run, without its conditions.

    It is a Sunday: the branch is closed, so that no result depends on the hour of the run. Raises
    SystemExit if the model's endpoint fails: that says nothing about the way.
    """
    person, endpoint.replies = Person(case), []
    run: Run = {"way": way, **asdict(case), "answer": None}
    with tempfile.TemporaryDirectory(prefix="comparison-") as folder:
        world = World(Path(folder) / "bank.db")
        world.clock.move(days=-1)
        await fill(world.location, world.clock())
        client = CLIENTS.get(way, Client)(
            world.server(),
            elicitation_callback=person.on_question,
            sampling_callback=endpoint.sample if way is Way.INFERRED else None,
            extensions=None if way in CLIENTS else [CLIENT_EXTENSION],
        )
        try:
            async with client:
                run |= await take(way, client, person, endpoint)
        except Exception as error:
            # A run that breaks off is a result like any other: the database judges it.
            run["ended"] = f"failed: {' '.join(str(error).split())[:200]}"
        if endpoint.unavailable:
            raise SystemExit(f"The endpoint failed: {endpoint.unavailable}")
        run["refused"], run["replies"] = person.refused, endpoint.replies
        run["stored"] = {name: world.sql(query) for name, query in STORED.items()}
    return run


def conditions(settings: ModelSettings, about: str) -> Run:
    """Return what all runs of a file are made under. `about` is what the endpoint does not say.

    `commit` is the last one that changed the package or how a run is made; the tree of the agent
    stays the same when the history is rewritten.
    """
    return {
        "commit": _git("log", "-1", "--format=%h", "--", *MAKING),
        "tree of the agent": _git("rev-parse", "--short", "HEAD:banking_server/client/agent"),
        "changed since": bool(_git("status", "--porcelain", "--", *MAKING)),
        "model": settings.model_dump(mode="json", exclude={"url", "key"}),
        "endpoint": about,
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def read(path: Path) -> list[Run]:
    """Return the runs of a file, without a last line that was not written to its end."""
    *lines, _torn = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


def plan() -> list[tuple[Case, Way]]:
    """Return the runs of each wording of each task in each way.

    The bank directs nothing in a plain transfer, so that there is nothing to measure of `nextTool`.
    One wording of each task is taken in each round, so that whatever else the machine does falls
    on all ways alike, and a file that is not whole yet is balanced. Each round begins with another
    way, as the endpoint's cache helps the others.
    """
    ways, tasks = list(Way), [cases(task) for task in Task]
    return [
        (case, way)
        for number, of_each_task in enumerate(zip(*tasks, strict=True))
        for case in of_each_task
        for way in [*ways[number % len(ways) :], *ways[: number % len(ways)]]
        if (way, case.task) != (Way.NEXT_TOOL, Task.TRANSFER)
    ]


async def make_all(
    path: Path,
    runs: Sequence[tuple[Case, Way]],
    settings: ModelSettings,
    about: str = "",
) -> None:
    """Make the runs that the file lacks, one after the other, and append each to it at once.

    Raises SystemExit if the endpoint fails, or if the file's runs had other conditions: then it
    would be no comparison.
    """
    path.touch()  # If it cannot be written, before the first run.
    whole, end, _torn = path.read_text(encoding="utf-8").rpartition("\n")
    path.write_text(whole + end, encoding="utf-8")
    kept = read(path)
    here = conditions(settings, about)
    for run in kept:
        if run["conditions"] != here:
            raise SystemExit(f"{path} was made under {run['conditions']}, and here it is {here}.")
    done = {(run["task"], run["way"], run["words"]) for run in kept}
    left = [(case, way) for case, way in runs if (case.task, way, case.words) not in done]
    async with CountingEndpoint(settings) as endpoint:
        for number, (case, way) in enumerate(left, 1):
            run = {**await make(case, way, endpoint), "conditions": here}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run, ensure_ascii=False) + "\n")
            print(f"{number} of {len(left)}: {case.task} {case.number}, {way}: {run['ended']}")
