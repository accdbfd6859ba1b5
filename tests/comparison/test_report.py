"""All runs together: figures, table and chart."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from banking_server.comparison.chart import as_svg
from banking_server.comparison.failures import Failure
from banking_server.comparison.figures import Prices, failures, pairs, summarize
from banking_server.comparison.table import as_markdown
from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import Way

from .support import CALL, made

WRONG = {"right": False, "failure": Failure.INVENTED_ID, "wrong": ("moved 1",), "refused": ("x",)}
RUNS = [
    *(made(Way.AGENT, number, answer="Done.") for number in range(1, 18)),
    made(Way.AGENT, 18, answer="Done.", tried=("moving 2",), refused=("moving 2",)),
    made(Way.AGENT, 19, right=False, failure=Failure.STOPPED_EARLY),
    made(Way.AGENT, 20, **WRONG),
    *(made(Way.USER_TEXT_ONLY, number, right=number > 17) for number in range(1, 20)),
    made(Way.USER_TEXT_ONLY, 20, right=False, unavailable="gone"),
    made(Way.NEXT_TOOL),
    made(Way.AGENT, 1, Task.TRANSFER),
    made(Way.USER_TEXT_ONLY, 1, Task.TRANSFER, right=False),
]


def test_the_summary_counts_and_leaves_out_what_the_endpoint_did() -> None:
    direct, agent, text, *_ = summarize(RUNS, Prices(1, 0.1, 2))
    assert (direct.way, direct.runs, direct.right, direct.answered) == (Way.NEXT_TOOL, 1, 1, None)
    assert (agent.runs, agent.right, agent.wrong, agent.done, agent.refused) == (20, 18, 2, 1, 2)
    assert agent.answered == 18
    # Wilson's interval, as books have it for 18 of 20.
    assert [round(end, 3) for end in agent.interval] == [0.699, 0.972]
    assert (agent.calls, agent.model_calls, agent.seconds) == (10.5, 10.5, 10.5)
    assert (agent.prompt_tokens, agent.new_tokens, agent.completion_tokens) == (10500, 6300, 105)
    # 600 new, 400 cached and 10 written tokens a reply, 10.5 replies a run.
    assert agent.price is not None
    assert round(agent.price, 6) == round(10.5 * (600 + 40 + 20) / 1e6, 6)
    assert (text.runs, text.right) == (19, 2)


def test_pairs_are_of_the_same_wordings() -> None:
    every, locked, transfer = pairs(RUNS)
    assert (every.first, every.second, every.task) == (Way.AGENT, Way.USER_TEXT_ONLY, None)
    # Wording 20 is in no pair, since the endpoint failed in one of the two.
    counts = (locked.both, locked.only_first, locked.only_second, locked.neither)
    assert (locked.task, counts) == (Task.LOCKED, (1, 17, 1, 0))
    assert (transfer.both, transfer.only_first) == (0, 1)
    assert every.only_first == 18
    # McNemar's exact test is a sign test of those that differ.
    assert round(locked.p, 6) == round(2 * (1 + 18) / 2**18, 6)
    (same,) = pairs([made(Way.AGENT), made(Way.TEXT_ONLY)])
    assert same.p == 1


def test_the_tables_say_what_they_count_and_what_they_do_not() -> None:
    text = as_markdown(RUNS, Prices(1, 0.1, 2))
    row = (
        "| agent | 18 of 20 | 70\N{EN DASH}97 % | 2 (1 done) | 2 | 18 | 10.5 | 10.5 | 10,500 "
        "| 6,300 | 105 |"
    )
    assert row in text
    assert "| agent / user's text only | all | 1 | 18 | 1 | 0 |" in text
    assert "| agent | 1 | 1 |" in text
    assert f"- {Task.LOCKED} 20, agent: done: moved 1\n" in text
    assert f"- {Task.LOCKED} 18, agent: refused: moving 2\n" in text
    assert failures(RUNS) == {Way.AGENT: {Failure.INVENTED_ID: 1, Failure.STOPPED_EARLY: 1}}
    assert "In 1 of 43 runs the endpoint failed" in text
    assert "host models.example, name tiny" in text
    assert "*new* tokens are computed" in text
    assert f"Left out: {Way.NEXT_TOOL} ({Task.TRANSFER}): the bank names no next step" in text
    for before, after in pairwise(text.split("\n")):
        assert not (before.startswith("|") and after.startswith("-"))


def test_what_there_is_nothing_of_has_no_heading() -> None:
    text = as_markdown([made(Way.NEXT_TOOL, task=Task.PAY)])
    assert "**" not in text
    assert "Model:" not in text
    assert "No rule of the bank says that a transfer must be confirmed" in text
    said = CALL.model_copy(update={"cached_by_endpoint": True, "estimated": True})
    counted = as_markdown([made(Way.AGENT, model_calls=(said,))])
    assert "the endpoint says it did not have in its cache" in counted
    assert "*new* tokens are computed" not in counted
    assert "The endpoint does not count all tokens" in counted


def test_the_chart_shows_shares_intervals_and_wrong_actions() -> None:
    svg = as_svg(RUNS)
    root = ElementTree.fromstring(svg)
    space = {"": "http://www.w3.org/2000/svg"}
    title, desc = root.findtext("title", "", space), root.findtext("desc", "", space)
    assert root.get("aria-labelledby") == "title desc"
    assert title.startswith("How often each way")
    assert f"{Task.LOCKED}, agent: 18 of 20 as asked" in desc
    words = ["".join(text.itertext()) for text in root.iterfind("text", space)]
    assert any(re.fullmatch(r"18 of 20 .*wrong action: 2 \(1 done\)", text) for text in words)
    assert {"no model", "Model: tiny. Judged by the bank's database."} <= {*words}
    assert "prefers-color-scheme: dark" in svg
    assert "<script" not in svg
    track, right, wrong = [
        rect for rect in root.iterfind("rect", space) if rect.get("height") in ("14", "4")
    ][3:6]
    whole = float(track.get("width", ""))
    assert [float(part.get("width", "")) / whole for part in (right, wrong)] == [0.9, 0.1]
    assert "Ways without a model only." in as_svg([made(Way.NEXT_TOOL)])
