"""`banking-server compare`: measure the ways to chain tools."""

import importlib.util
import math
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from banking_server.cli.client import silence_libraries
from banking_server.cli.messages import CommandFailed, note

if TYPE_CHECKING:
    from banking_server.agent import ModelSettings
    from banking_server.comparison.figures import Prices
    from banking_server.comparison.record import Measured, RunsFile
    from banking_server.comparison.tasks import Task
    from banking_server.comparison.ways import Way

_Word = TypeVar("_Word", bound=StrEnum)

ENDPOINT_FAILED = 3
"""The exit code where a run says nothing about its way, because the model's endpoint failed."""

_STOPPED = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}


def compare(
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="A task; may be given several times. Default: the three that are chains; `all` "
            "adds the everyday requests."
        ),
    ] = None,
    way: Annotated[
        list[str] | None,
        typer.Option(help="A way to measure; may be given several times. Default: all of them."),
    ] = None,
    wordings: Annotated[
        int | None,
        typer.Option(min=1, help="How many wordings of each task, from the first. Default: all."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Append each run to this file as it is made, one line of JSON each."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on where the --output file ends. Runs in which the endpoint failed are made "
            "again.",
        ),
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Make no runs: report on those of this file, of the tasks, ways and wordings "
            "that are named.",
        ),
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the tables to this file too.")] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Write a chart to this file, as SVG, light and dark.")
    ] = None,
    price_in: Annotated[
        float | None, typer.Option(min=0, help="Price of a million prompt tokens.")
    ] = None,
    price_cached: Annotated[
        float | None,
        typer.Option(
            min=0, help="The same for those in the endpoint's cache. Default: as the others."
        ),
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, help="Price of a million completion tokens.")
    ] = None,
) -> None:
    """Compare the ways to chain tools: run the same tasks through each, and judge the database.

    The model is the one of BANKING_MODEL_URL and BANKING_MODEL_NAME; if none is configured, only
    the ways that need none are run. Prints tables in Markdown. The exit code is 3 if the model's
    endpoint failed in a run.
    """
    if importlib.util.find_spec("scipy") is None:
        raise CommandFailed(
            "The comparison needs the extra `comparison`, which is not installed: "
            "in a checkout, pip install '.[comparison]'."
        )
    from banking_server.comparison.record import FileUnusable, RunsFile, read_runs
    from banking_server.comparison.tasks import CHAINS, WORDINGS, Task
    from banking_server.comparison.ways import Way

    tasks = list(Task) if task == ["all"] else _chosen("--task", task, Task) or list(CHAINS)
    ways = _chosen("--way", way, Way) or list(Way)
    if resume and output is None:
        raise typer.BadParameter("--resume goes on with the file of --output: name it")
    if wordings is not None and wordings > WORDINGS:
        raise typer.BadParameter(f"--wordings: there are {WORDINGS} of each task")
    prices = _prices(price_in, price_cached, price_out)
    _are_different(source, output, table, chart)
    silence_libraries()
    try:
        for path in (table, chart):
            _can_be_written(path)
        if source is not None:
            if output is not None:
                raise typer.BadParameter("--from makes no runs, so there is nothing to --output")
            wanted = [
                run
                for run in read_runs(source)
                if (not task or run.task in tasks)
                and (not way or run.way in ways)
                and run.number <= (wordings or WORDINGS)
            ]
            _report(wanted, prices, table, chart)
            return
        with ExitStack() as stack:
            file = None
            if output is not None:
                file = stack.enter_context(RunsFile(output, resume=resume))
            made, problem = _run(tasks, ways, wordings or WORDINGS, file)
            _report(made, prices, table, chart)
        if problem is not None:
            raise problem
    except FileUnusable as error:
        raise CommandFailed(str(error)) from None


def _run(
    tasks: Sequence["Task"],
    ways: Sequence["Way"],
    wordings: int,
    file: "RunsFile | None",
) -> tuple[list["Measured"], Exception | None]:
    """Make the runs that are left; return all that there are, and what is to be raised then."""
    import anyio

    from banking_server.comparison.model_calls import CountingEndpoint
    from banking_server.comparison.record import FileUnusable, differing, key_of, latest
    from banking_server.comparison.run import make, plan, seconds_left
    from banking_server.comparison.ways import WITH_MODEL, left_out

    settings = _model_settings(ways)
    can_be_made = [way for way in ways if settings is not None or way not in WITH_MODEL]
    made = [] if file is None else file.runs
    if file is not None and (difference := differing(made, settings)) is not None:
        raise CommandFailed(
            f"{file.path} was made under other conditions: {difference}. Make it so again, or name "
            "another file."
        )
    done = {run.key for run in latest(made) if run.unavailable is None}
    planned = plan(tasks, can_be_made, wordings)
    left = [one for one in planned if key_of(*one) not in done]
    for words in left_out(tasks, can_be_made):
        note(f"Left out: {words}.")
    if not planned:
        raise CommandFailed(
            "Nothing was run: the ways that you named need a model, or other tasks."
        )
    total = len(planned)
    count = total - len(left)

    def tell(run: "Measured") -> None:
        nonlocal count
        made.append(run)
        if file is not None:
            file.append(run)
        count += 1
        ahead = seconds_left(made, left[len(left) - (total - count) :])
        note(f"{count} of {total}, {_duration(ahead)} left: {_in_words(run)}")

    stopped_by: list[signal.Signals] = []

    async def make_all() -> None:
        # Whatever is under way then is given up in good order, and what a second one is for too.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    stopped_by.append(await anext(signals))
                    group.cancel_scope.cancel()

                group.start_soon(stop)
                if settings is None:
                    await make(left, None, tell)
                else:
                    async with CountingEndpoint(settings) as endpoint:
                        await make(left, endpoint, tell)
                group.cancel_scope.cancel()

    problem: Exception | None = None
    try:
        anyio.run(make_all)
    except Exception as error:
        problem = _first(error)
    if stopped_by:
        note(f"{_STOPPED[stopped_by[0]]}; these are the runs so far.")
        return made, typer.Exit(128 + stopped_by[0])
    if isinstance(problem, FileUnusable):
        return made, problem
    if problem is not None:
        reason = str(problem) or type(problem).__name__
        return made, CommandFailed(f"A run could not be made: {reason}")
    failed = [run.unavailable for run in latest(made) if run.unavailable is not None]
    if not failed:
        return made, None
    missing = total - count
    more = "1 more was" if missing == 1 else f"{missing} more were"
    others = f", so {more} not made" if missing else ""
    note(
        f"The model's endpoint failed in {len(failed)} of the runs{others}; --resume makes them "
        f"again. The last time: {failed[-1]}"
    )
    return made, typer.Exit(ENDPOINT_FAILED)


def _in_words(run: "Measured") -> str:
    if run.unavailable is not None:
        verdict = "the endpoint failed"
    elif run.right:
        verdict = "right"
    else:
        verdict = "WRONG: " + "; ".join(run.wrong) if run.wrong else f"not right, {run.failure}"
    return f"{run.task} {run.number}, {run.way}: {verdict} after {run.seconds:.1f} s ({run.ended})"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _model_settings(ways: Sequence["Way"]) -> "ModelSettings | None":
    """Return the model's settings if one of the ways needs a model, and one is configured."""
    from banking_server.agent import ModelNotConfigured, load_model_settings
    from banking_server.agent.settings import is_configured
    from banking_server.comparison.ways import WITH_MODEL

    if not set(ways) & set(WITH_MODEL):
        return None
    if not is_configured():
        note("No model is configured (BANKING_MODEL_URL), so only ways without one are run.")
        return None
    try:
        return load_model_settings()
    except ModelNotConfigured as error:
        raise CommandFailed(str(error)) from None


def _report(
    runs: Sequence["Measured"], prices: "Prices | None", table: Path | None, chart: Path | None
) -> None:
    """Print the tables, and write what is to be written, as far as there are runs."""
    from banking_server.comparison.chart import as_svg
    from banking_server.comparison.table import as_markdown

    if not any(run.unavailable is None for run in runs):
        note("There is no run to report on.")
        return
    words = as_markdown(runs, prices)
    print(words)
    for path, text in ((table, f"{words}\n"), (chart, None)):
        if path is not None:
            try:
                path.write_text(as_svg(runs) if text is None else text, encoding="utf-8")
            except OSError as error:
                raise CommandFailed(f"{path} cannot be written: {error.strerror}.") from None


def _chosen(option: str, given: Sequence[str] | None, words: type[_Word]) -> list[_Word]:
    for name in given or ():
        if name not in list(words):
            names = ", ".join(repr(str(word)) for word in words)
            raise typer.BadParameter(f"{option} must be one of {names}; not {name!r}")
    return [words(name) for name in dict.fromkeys(given or ())]


def _prices(
    prompt: float | None, cached: float | None, completion: float | None
) -> "Prices | None":
    from banking_server.comparison.figures import Prices

    if prompt is None and cached is None and completion is None:
        return None
    if prompt is None or completion is None:
        raise typer.BadParameter(
            "a price takes --price-in and --price-out, of a million tokens each"
        )
    if not all(map(math.isfinite, filter(None, (prompt, cached, completion)))):
        raise CommandFailed("A price must be a number, not inf.")
    return Prices(prompt, prompt if cached is None else cached, completion)


def _are_different(*paths: Path | None) -> None:
    """Refuse one file for two purposes: the one would be written over by the other."""
    for first, second in combinations([path for path in paths if path is not None], 2):
        linked = first.exists() and second.exists() and first.samefile(second)
        if linked or first.resolve() == second.resolve():
            raise CommandFailed(f"{first} and {second} are one file: name two.")


def _can_be_written(path: Path | None) -> None:
    """Raise CommandFailed if a file cannot be written: before the first run, not after the last.

    A file of runs is not written over.
    """
    from banking_server.comparison.record import holds_runs

    if path is not None:
        try:
            if path.exists() and holds_runs(path):
                raise CommandFailed(f"{path} holds runs: name another file.")
            path.open("a").close()
        except OSError as error:
            raise CommandFailed(f"{path} cannot be written: {error.strerror}.") from None
