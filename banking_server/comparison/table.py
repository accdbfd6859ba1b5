"""A comparison in Markdown: the table, the pairs, why runs failed, and how to read it."""

from collections.abc import Iterable, Sequence
from typing import Final

from banking_server.comparison.failures import Failure
from banking_server.comparison.figures import Pair, Prices, Summary, failures, pairs, summarize
from banking_server.comparison.record import Measured, latest
from banking_server.comparison.tasks import POSTED, Task
from banking_server.comparison.ways import Way, left_out

_NOTES: Final[dict[Way, str]] = {
    Way.NEXT_TOOL: "the calls that the words ask for are given by hand; only what follows is found",
    Way.REFERENCED: "the plan is given by hand, with the accounts' names and the amount; where it "
    "ends in a directive, the client follows that",
    Way.AGENT: "directives are followed; a distracting second server stands beside the bank",
    Way.TEXT_ONLY: "the same without directives: the model reads the server's words for models, "
    "which name the next call, so this tests copying more than judgement",
    Way.USER_TEXT_ONLY: "the same, and the model reads only what the user is told",
    Way.INFERRED: "the plan is given by hand, so that no tool can distract, but the customer's "
    "other accounts can; the model finds the arguments in the words; where it ends in a directive, "
    "the client follows that",
}

_READING: Final = (
    "Each run is of a wording of its own, with a new server and a new database, and is judged by "
    "the database alone; in the answer to a question, the first amount of money, in digits, must "
    "be the right one too.",
    "*95 %* is Wilson's interval. *Wrong action*: runs in which money was moved or prepared "
    "otherwise than asked, or a handoff or an approval was made that nobody asked for, or would "
    "have been, had the customer not refused it; in brackets, those in which it was done. The "
    "customer is a script that knows what was asked for. An agent's host asks them before each "
    "call; in the ways with `multiplex_tools` the plan is given, so that its steps are done "
    "without asking, and wrong arguments are carried out.",
    "*Refused*: runs in which the customer was asked to agree to anything else than they wanted, "
    "and did not. A refusal also tells the model no: a run that it put right counts as right, and "
    "as one with a wrong action if that was refused. To send a message to the distracting server, "
    "which moves no money and connects nobody, is refused, and no wrong action.",
    "The bank's branch is closed in all runs, so that none depends on its hour: an approval takes "
    "a handoff too, and a handoff without one is a wrong action. Where the task is a handoff, its "
    "reason must name the account, by its id or its name: whoever calls back must know which.",
    "*Calls* are those that the bank was asked for, `multiplex_tools`, each of its steps, and the "
    "accounts that an agent reads at the beginning included. Calls, tokens and seconds are "
    "medians, a price is a mean.",
)

_CONFIRMING: Final = (
    "No rule of the bank says that a transfer must be confirmed, so no directive does: under "
    "nextTool that call is given too."
)


def as_markdown(runs: Iterable[Measured], prices: Prices | None = None) -> str:
    """Return everything that is published of a comparison, but the chart."""
    made = latest(runs)
    parts = [
        _table(summarize(made, prices)),
        "**Pairs**, on the same wordings (McNemar's exact test):",
        _pairs(pairs(made)),
        "**Why runs failed**, the first cause that fits of each:",
        _failures(made),
        "**Wrong actions**, of each run that had one:",
        _wrong(made),
        _notes(made),
    ]
    return "\n\n".join(part for part in _with_content(parts))


def _with_content(parts: Sequence[str]) -> Iterable[str]:
    """Leave out what is empty, and its heading."""
    for part, following in zip(parts, [*parts[1:], "end"], strict=True):
        if part and (following or not part.startswith("**")):
            yield part


def _rows(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """Return a table whose first `texts` columns are words, and the others figures."""
    lines = [header, ["---"] * texts + ["---:"] * (len(header) - texts), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _table(summaries: Sequence[Summary]) -> str:
    priced = any(line.price is not None for line in summaries)
    header = [
        *("task", "way", "right", "95 %", "wrong action", "refused", "answered"),
        *("calls", "model calls", "tokens in", "of them new", "tokens out"),
        *(["price"] if priced else []),
        "seconds",
    ]
    rows = [
        [
            line.task,
            line.way,
            f"{line.right} of {line.runs}",
            percents(line),
            wrong_actions(line),
            str(line.refused),
            "" if line.answered is None else str(line.answered),
            f"{line.calls:g}",
            f"{line.model_calls:g}",
            f"{line.prompt_tokens:,g}",
            f"{line.new_tokens:,g}",
            f"{line.completion_tokens:,g}",
            *([] if line.price is None else [f"{line.price:.3g}"]),
            f"{line.seconds:.3g}",
        ]
        for line in summaries
    ]
    return _rows(header, rows, 2)


def percents(line: Summary) -> str:
    """Return the interval of a summary for people: 70 to 97 %."""
    low, high = (round(100 * share) for share in line.interval)
    return f"{low}\N{EN DASH}{high} %"


def wrong_actions(line: Summary) -> str:
    """Return how many runs had a wrong action, and in how many of them it was done."""
    return f"{line.wrong} ({line.done} done)" if line.wrong else "0"


def _wrong(runs: Iterable[Measured]) -> str:
    """List what nobody asked for, run by run."""
    lines = []
    for run in runs:
        actions = [f"done: {words}" for words in run.wrong]
        actions += [f"refused: {words}" for words in run.tried]
        if actions and run.unavailable is None:
            lines.append(f"- {run.task} {run.number}, {run.way}: {'; '.join(actions)}")
    return "\n".join(lines)


def _pairs(found: Sequence[Pair]) -> str:
    rows = [
        [
            f"{pair.first} / {pair.second}",
            pair.task or "all",
            *(str(n) for n in (pair.both, pair.only_first, pair.only_second, pair.neither)),
            f"{pair.p:.2g}",
        ]
        for pair in found
    ]
    header = ["ways", "task", "both right", "only the first", "only the second", "neither", "p"]
    return _rows(header, rows, 2) if rows else ""


def _failures(runs: Iterable[Measured]) -> str:
    found = failures(runs)
    classes = [one for one in Failure if any(one in counts for counts in found.values())]
    rows = [[way, *(str(counts[one]) for one in classes)] for way, counts in found.items()]
    return _rows(["way", *classes], rows, 1) if rows else ""


def _notes(runs: Sequence[Measured]) -> str:
    tasks = [task for task in Task if any(run.task is task for run in runs)]
    ways = [way for way in Way if any(run.way is way for run in runs)]
    lines = [
        *_READING,
        *_of_the_model(runs),
        *(f"{way}: {_NOTES[way]}." for way in ways),
        *(f"Left out: {words}." for words in left_out(tasks, ways)),
        *_of_the_endpoint(runs),
    ]
    if Way.NEXT_TOOL in ways and any(task in POSTED for task in tasks):
        lines.append(_CONFIRMING)
    return "\n".join(f"- {line}" for line in lines)


def _of_the_model(runs: Sequence[Measured]) -> list[str]:
    """Say under what the runs were made, and how what is new of a prompt was found."""
    lines = []
    made = {run.conditions.model_dump_json(): run.conditions for run in runs}.values()
    for one in made:
        if one.model is not None:
            settings = ", ".join(f"{name} {value}" for name, value in one.model.items())
            lines.append(
                f"Model: {settings}; banking-server {one.version}, Python {one.python}, "
                f"{one.machine}."
            )
    calls = [call for run in runs for call in run.model_calls]
    if any(call.cached_by_endpoint for call in calls):
        lines.append("*New* tokens are those that the endpoint says it did not have in its cache.")
    if not all(call.cached_by_endpoint for call in calls):
        lines.append(
            "Where the endpoint does not say, *new* tokens are computed: those after what a prompt "
            "has in common with the one before it, as an endpoint reads that keeps the last one."
        )
    if any(call.estimated for call in calls):
        lines.append("The endpoint does not count all tokens; some are estimates from the length.")
    return lines


def _of_the_endpoint(runs: Sequence[Measured]) -> list[str]:
    failed = sum(run.unavailable is not None for run in runs)
    if not failed:
        return []
    return [f"In {failed} of {len(runs)} runs the endpoint failed; they are counted nowhere above."]
