"""`banking-server compare`: measure the ways to chain tools."""

from pathlib import Path
from typing import Annotated

import typer

from banking_server.cli.client import silence_libraries
from banking_server.cli.messages import CommandFailed, note


def compare(
    runs: Annotated[int, typer.Option(min=1, help="Runs of each task in each way.")] = 5,
    way: Annotated[
        list[str] | None,
        typer.Option(help="A way to measure; may be given several times. Default: all of them."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write every run and the summary to this file, as JSON.")
    ] = None,
) -> None:
    """Compare the ways to chain tools: run the same tasks through each, and judge the database.

    The model is the one of BANKING_MODEL_URL and BANKING_MODEL_NAME; if none is configured, only
    the ways that need none are run. Prints a Markdown table and a Mermaid chart.
    """
    import anyio

    from banking_server.agent import Endpoint, ModelNotConfigured, load_model_settings
    from banking_server.agent.settings import is_configured
    from banking_server.comparison.run import Measured, compare_ways
    from banking_server.comparison.table import as_json, as_markdown
    from banking_server.comparison.ways import WITH_MODEL, Way

    unknown = [name for name in way or () if name not in list(Way)]
    if unknown:
        names = ", ".join(repr(str(name)) for name in Way)
        raise typer.BadParameter(f"--way must be one of {names}; not {unknown[0]!r}")
    ways = [Way(name) for name in way] if way else list(Way)
    silence_libraries()

    def tell(run: Measured) -> None:
        verdict = "correct" if run.correct else "not correct"
        note(f"{run.task}, {run.way}: {verdict} after {run.seconds:g} s ({run.ended})")

    async def measure_and_report() -> None:
        if not is_configured() or not set(ways) & set(WITH_MODEL):
            if set(ways) & set(WITH_MODEL):
                note(
                    "No model is configured (BANKING_MODEL_URL), so only ways without one are run."
                )
            report(await compare_ways(None, runs=runs, ways=ways, on_run=tell), None)
            return
        try:
            settings = load_model_settings()
        except ModelNotConfigured as error:
            raise CommandFailed(str(error)) from None
        async with Endpoint(settings) as endpoint:
            report(await compare_ways(endpoint, runs=runs, ways=ways, on_run=tell), endpoint)

    def report(results: list[Measured], endpoint: Endpoint | None) -> None:
        if not results:
            raise CommandFailed("Nothing was run: the ways that you named need a model.")
        if output is not None:
            output.write_text(as_json(results, endpoint) + "\n", encoding="utf-8")
        print(as_markdown(results))

    anyio.run(measure_and_report)
