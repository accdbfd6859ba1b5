"""A run of each way with a model from a script, judged by its database, and reported."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from banking_server.client.agent.settings import ModelSettings

from ..kit.model import call, error, scripted_model
from ..kit.words import HANDOFF, PREPARE
from .__main__ import write
from .report import ALL, judge, lines, page, told_truly, wilson
from .runs import STORED, make_all, plan, read
from .tasks import Case, Task, cases
from .ways import WITH_AGENT, Way

HERE = Path(__file__).parent
LOCKED, TRANSFER, THRESHOLD = (cases(task)[0] for task in Task)


def script(request: dict[str, Any]) -> str:
    """Do what the words for models say, infer a wrong amount of a transfer, and else be done."""
    words = str(request["messages"][-1]["content"])
    if "What is wanted:" in words:
        wanted = words.rsplit("What is wanted:", 1)[1]
        if "transferId" in wanted:
            return str(re.findall(r"tr_[0-9a-f]{16}", words)[-1])
        case = LOCKED if LOCKED.words in words else TRANSFER
        if "the amount" in wanted:
            return str(case.dollars if case is LOCKED else case.dollars + 1)
        return case.source if "take the money from" in wanted else case.target
    if step := re.search(r"exactly these arguments: (\{.*?\})", words.replace('\\"', '"')):
        return call(HANDOFF, **json.loads(step[1]))
    if len(request["messages"]) == 2:
        accounts = {"fromAccountId": LOCKED.source, "toAccountId": LOCKED.target}
        return call(PREPARE, **accounts, amount=LOCKED.dollars)
    return "Done: an agent of the bank will call you back."


def settings(url: str) -> ModelSettings:
    return ModelSettings(url=url, name="scripted", tools="prompt")


@pytest.mark.anyio
async def test_runs_of_each_way_come_to_a_table(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    runs = [*((LOCKED, way) for way in Way), (TRANSFER, Way.INFERRED)]
    with scripted_model(script) as model:
        await make_all(file, runs[:2], settings(model.url))
        await make_all(file, runs, settings(model.url))
    made = read(file)
    assert len(made) == len(runs), "what the file holds is not made again"
    assert [step["by"] for step in made[0]["steps"]] == ["hand", "directive"]
    inferred = {reply["argument"] for reply in made[-1]["replies"]}
    assert {"fromAccountId", "toAccountId", "amount"} <= inferred

    found = {(line.task, line.way): line for line in lines(made)}
    for way in Way:
        line = found[Task.LOCKED, way]
        # What the user is told names no tool, so this model stops, and says that it is done.
        right = way is not Way.USER_TEXT_ONLY
        assert (line.runs, line.right, line.wrong, line.refused) == (1, right, 0, 0), line
        assert line.told == (way in WITH_AGENT and right)
    assert found[Task.LOCKED, Way.TEXT_ONLY].costs["replies"] == 3
    line = found[ALL, Way.INFERRED]
    assert (line.runs, line.right, line.wrong, line.refused) == (2, 1, 1, 1)

    write(file)
    said = (tmp_path / "runs.md").read_text(encoding="utf-8")
    rows = said.partition(f"| {Task.LOCKED} | ")[2].partition(f"| {Task.TRANSFER} | ")[0]
    assert f"|  | {Way.AGENT} | 1 of 1 (21\u2013100 %) | 0 | 0 | 1 |" in rows
    wrong = f"[['{TRANSFER.source}', '{TRANSFER.target}', 5600, None, 'pending']]"
    assert f"- {Task.TRANSFER} 1, {Way.INFERRED}: {wrong}\n" in said


@pytest.mark.anyio
async def test_an_endpoint_that_fails_ends_the_runs_and_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with scripted_model([error(404)]) as model, pytest.raises(SystemExit, match="HTTP 404"):
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


@pytest.mark.parametrize(
    ("case", "answer", "true"),
    [
        (LOCKED, "An agent will call you back. Your reference is ho_0123456789abcdef.", True),
        (LOCKED, "An agent will call you back. Your reference is ho_ffffffffffffffff.", False),
        (LOCKED, "No agent was asked, and no agent will call you back.", False),
        (LOCKED, "You will be connected with an agent right now.", False),
        (LOCKED, "Your transfer was successful. An agent will call you.", False),
        (LOCKED, "I will wait for the agent to speak with me.", False),
        (LOCKED, f"{LOCKED.words} An agent has been asked.", False),
        (LOCKED, "Thank you for your patience.", False),
        (TRANSFER, "I have transferred $55.00 to Everyday Checking.", True),
        (TRANSFER, "The transfer of 55 dollars is complete.", True),
        (TRANSFER, "I have transferred $55.00 to the Retirement Fund.", False),
        (TRANSFER, "The transfer of 5.50 dollars is complete.", False),
        (TRANSFER, "The transfer of 55 dollars is prepared. Please confirm it.", False),
        (TRANSFER, "The transfer of 55 dollars has not been made.", False),
    ],
)
def test_an_answer_is_true_that_says_what_became_of_the_request(
    case: Case, answer: str, true: bool
) -> None:
    done: dict[str, Any] = {"transfers": [asked(TRANSFER, "posted")]}
    if case is LOCKED:
        done = {"handoffs": [["Primary Checking is locked", "callback"]]}
    stored = {**{name: [] for name in STORED}, "ids": [["ho_0123456789abcdef"]], **done}
    assert told_truly({**vars(case), "answer": answer, "stored": stored}) is true


def test_wilsons_interval() -> None:
    shares = [tuple(round(100 * end) for end in wilson(right, 11)) for right in (11, 8, 6, 0)]
    assert shares == [(74, 100), (43, 90), (28, 79), (0, 26)]


def test_every_wording_is_planned_in_each_way_that_makes_sense() -> None:
    planned = plan()
    assert len(planned) == len(set(planned)) == 12 * (6 + 5 + 6)


@pytest.mark.parametrize("task", Task)
def test_half_of_the_wordings_give_ids(task: Task) -> None:
    given = [case.source in case.words and case.target in case.words for case in cases(task)]
    assert given == [True, False] * 6


def test_what_is_published_follows_from_the_results() -> None:
    results = read(HERE / "results.jsonl")
    assert (HERE / "results.md").read_text(encoding="utf-8") == page(results)
