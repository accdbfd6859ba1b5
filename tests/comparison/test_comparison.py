"""A run of each way with a model from a script, judged by its database, and reported."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from banking_server.client.agent.settings import ModelSettings

from ..kit.model import Action, call, error, native, scripted_model
from ..kit.words import HANDOFF, PREPARE
from .__main__ import write
from .report import judge, lines, page, wilson
from .runs import STORED, make_all, plan, read
from .tasks import Case, Task, cases
from .ways import Way

HERE = Path(__file__).parent
LOCKED, TRANSFER, THRESHOLD = (cases(task)[0] for task in Task)


def script(request: dict[str, Any]) -> Action:
    """Do what the words for models say, and else be done."""
    words = str(request["messages"][-1]["content"])
    make: Any = native if request.get("tools") else call
    if step := re.search(r"exactly these arguments: (\{.*?\})", words.replace('\\"', '"')):
        return make(HANDOFF, **json.loads(step[1]))
    if len(request["messages"]) == 2:
        accounts = {"fromAccountId": LOCKED.source, "toAccountId": LOCKED.target}
        return make(PREPARE, **accounts, amount=LOCKED.dollars)
    return "Done: an agent of the bank will call you back."


def settings(url: str) -> ModelSettings:
    return ModelSettings(url=url, name="scripted")


@pytest.mark.anyio
async def test_runs_of_each_way_come_to_a_table(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    runs = [(LOCKED, way) for way in Way]
    with scripted_model(script) as model:
        await make_all(file, runs[:2], settings(model.url))
        await make_all(file, runs, settings(model.url))
    made = read(file)
    assert len(made) == len(runs), "what the file holds is not made again"
    assert [step["by"] for step in made[0]["steps"]] == ["first call", "directive"]
    found = {line.way: line for line in lines(made) if line.task is Task.LOCKED}
    for way, line in found.items():
        # What the user is told names no tool, so this model stops, and says that it is done.
        right = way is not Way.USER_TEXT_ONLY
        assert (line.runs, line.right, line.wrong, line.refused) == (1, right, 0, 0), line
    assert [found[way].costs["replies"] for way in Way] == [0, 2, 2, 3, 2]
    write(file)
    assert f"|  | {Way.AGENT} | 1 of 1 (21\u2013100 %) | 0 | 0 |" in (
        file.with_suffix(".md").read_text(encoding="utf-8")
    )


@pytest.mark.anyio
async def test_an_endpoint_that_fails_ends_the_runs_and_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with scripted_model([error(404)]) as model, pytest.raises(SystemExit, match="404"):
        await make_all(file, [(LOCKED, Way.AGENT)] * 2, settings(model.url))
    assert read(file) == []
    with file.open("a", encoding="utf-8") as torn:
        torn.write('{"task": "list')
    assert read(file) == []


def asked(case: Case, status: str) -> list[Any]:
    return [case.source, case.target, case.amount, None, status]


@pytest.mark.parametrize(
    ("case", "stored", "right", "wrong"),
    [
        (TRANSFER, {"transfers": [asked(TRANSFER, "posted")]}, True, False),
        (TRANSFER, {"transfers": [asked(TRANSFER, "pending")]}, False, False),
        (TRANSFER, {"transfers": [asked(TRANSFER, "posted")] * 2}, False, True),
        (LOCKED, {"handoffs": [["Primary Checking is locked", "callback"]]}, True, False),
        (LOCKED, {"handoffs": [["it is locked", "callback"]]}, False, False),
        (LOCKED, {"handoffs": [["Primary Checking is locked", "callback"]] * 2}, False, True),
        (THRESHOLD, {"transfers": [asked(THRESHOLD, "pending")]}, False, False),
        (THRESHOLD, {"transfers": [asked(THRESHOLD, "posted")]}, False, True),
        (TRANSFER, {"approvals": [["requested"]]}, False, True),
    ],
)
def test_the_database_is_the_judge(
    case: Case, stored: dict[str, Any], right: bool, wrong: bool
) -> None:
    run = {**vars(case), "stored": {**{name: [] for name in STORED}, **stored}}
    assert judge(run) == (right, wrong)


def test_wilsons_interval() -> None:
    shares = [tuple(round(100 * end) for end in wilson(right, 11)) for right in (11, 8, 6, 0)]
    assert shares == [(74, 100), (43, 90), (28, 79), (0, 26)]


def test_every_wording_is_planned_in_each_way_that_makes_sense() -> None:
    planned = plan()
    assert len(planned) == len(set(planned)) == 12 * (5 + 4 + 5)


@pytest.mark.parametrize("task", Task)
def test_half_of_the_wordings_give_ids(task: Task) -> None:
    given = [case.source in case.words and case.target in case.words for case in cases(task)]
    assert given == [True, False] * 6


def test_what_is_published_follows_from_the_results() -> None:
    results = read(HERE / "results.jsonl")
    assert (HERE / "results.md").read_text(encoding="utf-8") == page(results)
