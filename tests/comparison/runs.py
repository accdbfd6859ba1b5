"""Runs, each on a new bank and a server of its own, and the file that keeps them: a line each.

A line holds what was said, called and asked of the model, and what the database held at the end.
Nothing is judged here.
"""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp import Client
from openai import AsyncOpenAI
from pydantic_ai import ModelAPIError, ModelResponse, TextPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from banking_server.client.agent import conversation
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
    "approvals": "SELECT status FROM approval",
    "reports": "SELECT rule FROM compliance_report",
    "calls": "SELECT tool, outcome FROM audit_event ORDER BY event_id",
}
"""What of the database is kept."""

MAKING = (
    *(":/banking_server", ":/data", ":/specs/python", ":(top,exclude,glob)**/*.md"),
    *(f"{name}.py" for name in ("person", "runs", "tasks", "ways")),
)
"""The files that decide how a run ends, beside its words."""


class Counting(WrapperModel):
    """A model whose replies are kept, with what they cost."""

    replies: list[Run]
    failure: str | None = None
    """Why a request brought no reply; None if none failed."""

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask for the next reply, and keep it."""
        try:
            response = await super().request(*args, **kwargs)
        except ModelAPIError as error:
            self.failure = str(error)
            raise
        texts = [part.content for part in response.parts if isinstance(part, TextPart)]
        used = response.usage
        costs = {"tokens_in": used.input_tokens, "tokens_out": used.output_tokens}
        self.replies.append({**costs, "text": "\n".join(texts)})
        return response


async def make(case: Case, way: Way, model: Counting) -> Run:
    """Make one run, without its conditions.

    It is a Sunday: the branch is closed, so that no result depends on the hour of the run. Raises
    SystemExit if the model's endpoint fails: that says nothing about the way.
    """
    person, model.replies = Person(case), []
    run: Run = {"way": way, **asdict(case), "answer": None}
    with tempfile.TemporaryDirectory(prefix="comparison-") as folder:
        world = World(Path(folder) / "bank.db")
        world.clock.move(days=-1)
        await fill(world.location, world.clock())
        client = CLIENTS.get(way, Client)(
            world.server(),
            elicitation_callback=person.on_question,
            extensions=None if way in CLIENTS else [CLIENT_EXTENSION],
        )
        async with client:
            run |= await take(way, client, person, model)
        if model.failure:
            raise SystemExit(f"The endpoint failed: {model.failure}")
        run |= {"steps": person.steps, "refused": person.refused, "replies": model.replies}
        run["stored"] = {name: world.sql(query) for name, query in STORED.items()}
    return run


def conditions(settings: ModelSettings, about: str) -> Run:
    """Return what all runs of a file are made under. `about` is what the endpoint does not say."""
    return {
        "commit": _git("log", "-1", "--format=%h", "--", *MAKING),
        "changed since": bool(_git("status", "--porcelain", "--", *MAKING)),
        "model": f"{settings.name}, temperature 0",
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
    One wording of each task is taken in each round, so that a file that is not whole is balanced.
    """
    return [
        (case, way)
        for of_each_task in zip(*map(cases, Task), strict=True)
        for way in Way
        for case in of_each_task
        if (way, case.task) != (Way.NEXT_TOOL, Task.TRANSFER)
    ]


async def make_all(
    path: Path, runs: Sequence[tuple[Case, Way]], settings: ModelSettings, about: str = ""
) -> None:
    """Make the runs that the file lacks, one after the other, and append each to it at once.

    Raises SystemExit if the endpoint fails, or if the file's runs had other conditions: then it
    would be no comparison.
    """
    path.touch()  # If it cannot be written, before the first run.
    whole, end, _torn = path.read_text(encoding="utf-8").rpartition("\n")
    path.write_text(whole + end, encoding="utf-8")
    kept, here = read(path), conditions(settings, about)
    for run in kept:
        if run["conditions"] != here:
            raise SystemExit(f"{path} was made under {run['conditions']}, and here it is {here}.")
    done = {(run["task"], run["way"], run["words"]) for run in kept}
    left = [(case, way) for case, way in runs if (case.task, way, case.words) not in done]
    # A machine that does other work, too, ends no run.
    conversation.SECONDS = 24 * 3600  # type: ignore[misc]
    key = settings.key.get_secret_value() if settings.key else "none"
    async with AsyncOpenAI(base_url=settings.url, api_key=key, timeout=24 * 3600) as client:
        provider = OpenAIProvider(openai_client=client)
        model = Counting(
            OpenAIChatModel(settings.name, provider=provider, settings={"temperature": 0})
        )
        for number, (case, way) in enumerate(left, 1):
            run = {**await make(case, way, model), "conditions": here}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run, ensure_ascii=False) + "\n")
            print(f"{number} of {len(left)}: {case.task} {case.number}, {way}", flush=True)
