"""The summary of a comparison."""

import json

from banking_server.comparison.run import Measured
from banking_server.comparison.table import as_json, as_markdown, summarize
from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import Way


def run_of(way: Way, *, correct: bool, seconds: float, calls: int) -> Measured:
    return Measured(Task.LOCKED, way, "words", correct, calls, 10, 1, False, seconds, "completed")


def test_the_summary_gives_counts_and_medians() -> None:
    runs = [
        run_of(Way.AGENT, correct=True, seconds=1.0, calls=2),
        run_of(Way.AGENT, correct=False, seconds=9.0, calls=4),
        run_of(Way.AGENT, correct=True, seconds=2.0, calls=3),
        run_of(Way.NEXT_TOOL, correct=True, seconds=0.5, calls=0),
    ]
    agent, direct = summarize(runs)
    assert (agent.way, agent.runs, agent.correct, agent.seconds) == (Way.AGENT, 3, 2, 2.0)
    assert agent.model_calls == 3
    assert (direct.runs, direct.correct) == (1, 1)
    table = as_markdown(runs)
    assert "| locked account to recorded handoff | agent | 2 of 3 | 3 | 10 | 1 | 2 |" in table
    assert "bar [100, 67]" in table
    report = json.loads(as_json(runs, None))
    assert len(report["runs"]) == 4
    assert report["model"] is None
