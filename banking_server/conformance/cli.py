"""The command `tool-chaining-conformance`."""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

import typer
from rich.console import Console

from banking_server import __version__
from banking_server.conformance.client.run import command_runner, run_client
from banking_server.conformance.client.script import load_client_scripts
from banking_server.conformance.report.expected_failures import (
    ExpectedFailure,
    ExpectedFailuresError,
    is_bad,
    load_expected_failures,
    stale_entries,
)
from banking_server.conformance.report.judgement import Judgement
from banking_server.conformance.report.redaction import Redaction, shown_command
from banking_server.conformance.report.report import SUITE, ClientOutput, Report, check_json
from banking_server.conformance.report.verdict import EXIT_CODES, FailOn, Verdict, conclude
from banking_server.conformance.requirements import Side, checks_of, load_checks
from banking_server.conformance.scenario_file import ScenarioError
from banking_server.conformance.server.run import PASSIVE, run_server
from banking_server.conformance.server.scenario import load_server_scenario
from banking_server.conformance.target.channel import Target
from banking_server.conformance.target.child_process import CannotStart
from banking_server.conformance.target.era import Era
from banking_server.conformance.traceability import matrix_json, print_matrix

USAGE_ERROR = 2
INTERRUPTED = 130
TERMINATED = 143

app = typer.Typer(
    help="Does a server, or a client, do what the tool-chaining specification says?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class UsageError(Exception):
    """The command line cannot be carried out; the message says why."""


Command = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND…", help="The program to start.")
]
SpecVersions = Annotated[
    list[Era] | None,
    typer.Option("--spec-version", help="Protocol revision to speak; both unless given."),
]
Checks = Annotated[
    list[str] | None, typer.Option("--check", metavar="ID", help="Only this check; repeatable.")
]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Seconds for one answer, or for one run of a client.")
]
ExpectedFailures = Annotated[
    Path | None, typer.Option(metavar="FILE", help="YAML: what is known to fail.")
]
FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", help="What makes the run nonconformant.")
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output-dir", metavar="DIR", help="Write report.json and checks.json."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print report.json instead of a summary.")]
Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Show every check, and all wire messages of failures.")
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{SUITE} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def server(
    command: Command = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running server (Streamable HTTP).")
    ] = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="How the server is exercised; repeatable."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ENVVAR", help="HTTP header whose value is in that variable; repeatable."
        ),
    ] = None,
    spec_version: SpecVersions = None,
    check: Checks = None,
    timeout: Timeout = 30.0,
    expected_failures: ExpectedFailures = None,
    fail_on: FailOnOption = "failure",
    output_dir: Output = None,
    as_json: AsJson = False,
    junit: Junit = None,
    verbose: Verbose = False,
) -> None:
    """Judge a server, at --url or started as -- COMMAND.

    Only tools that a scenario file names are called, and what a directive of theirs names where
    the file allows it. Without a file no tool is called, and the verdict is inconclusive.
    """
    if (url is None) == (not command):
        raise UsageError("give either --url URL or -- COMMAND")
    if header and url is None:
        raise UsageError("--header goes with --url: a server over stdio gets no headers")
    if url is not None and urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"--url must begin with http:// or https://, not {url!r}")
    headers = dict(_header(each) for each in header or ())
    redaction = Redaction()
    for value in headers.values():
        redaction.add(value)
        redaction.add(value.partition(" ")[2])
    if url is not None:
        redaction.add(urlsplit(url).password or "")
        redaction.add(urlsplit(url).query)
    scenarios = [load_server_scenario(path) for path in scenario or ()]
    names = [each.name for each in scenarios] or [PASSIVE]
    if len(set(names)) < len(names):
        raise UsageError("two scenario files have the same name")
    expected = _expected(expected_failures, "server", names)
    target = Target(url=url, command=command or (), headers=headers, timeout=timeout)
    started = datetime.now(UTC)
    run = run_server(
        target,
        scenarios,
        _eras(spec_version),
        _chosen(check, "server"),
        redaction,
        _progress(as_json),
    )
    shown: dict[str, Any] = (
        {"url": _without_credentials(url)} if url else {"command": shown_command(command or ())}
    )
    _finish(
        "server",
        shown | _identity(run.name, run.version),
        run.judgements,
        silence=run.silence,
        eras=run.spoken,
        scenarios=names,
        problems=run.problems,
        expected=expected,
        started=started,
        redaction=redaction,
        outputs=(),
        tell=_Tell(fail_on, output_dir, as_json, junit, verbose),
    )


@app.command()
def client(
    command: Command = None,
    spec_version: SpecVersions = None,
    check: Checks = None,
    timeout: Timeout = 30.0,
    expected_failures: ExpectedFailures = None,
    fail_on: FailOnOption = "failure",
    output_dir: Output = None,
    as_json: AsJson = False,
    junit: Junit = None,
    verbose: Verbose = False,
) -> None:
    """Judge a client, started as -- COMMAND URL once for each case.

    MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT tell
    it what to do: the context is JSON with the tool to call first and its arguments.
    """
    if not command:
        raise UsageError("give the client as -- COMMAND; the mock server's URL is appended to it")
    scripts = load_client_scripts()
    names = [script.scenario for script in scripts]
    expected = _expected(expected_failures, "client", names)
    started = datetime.now(UTC)
    run = run_client(
        command_runner(command),
        scripts,
        _eras(spec_version),
        _chosen(check, "client"),
        timeout,
        _progress(as_json),
    )
    _finish(
        "client",
        {"command": shown_command(command)} | _identity(run.name, run.version),
        run.judgements,
        silence=run.silence,
        eras=run.spoken,
        scenarios=names,
        problems=run.problems,
        expected=expected,
        started=started,
        redaction=Redaction(),
        outputs=[
            ClientOutput(
                each.script.scenario, each.era, each.case.name, each.end.output, each.end.errors
            )
            for each in run.runs
        ],
        tell=_Tell(fail_on, output_dir, as_json, junit, verbose),
    )


@app.command("list")
def list_checks(
    side: Annotated[
        Side | None, typer.Argument(help="Only the checks of servers, or of clients.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List every check with the sentences it tests."""
    sides: tuple[Side, ...] = ("server", "client") if side is None else (side,)
    checks = [check for each in sides for check in checks_of(each)]
    if as_json:
        typer.echo(json.dumps([check_json(check) for check in checks], indent=2))
        return
    for check in checks:
        only = "" if len(check.eras) == len(Era) else f"  {', '.join(check.eras)} only"
        typer.echo(f"{check.id}  {check.level}{only}")
        for requirement in check.requirements:
            typer.echo(f"    {requirement.id}  {requirement.text}")


@app.command()
def traceability(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print the matrix: sentence, the checks that test it, the mutants that fail them."""
    if as_json:
        typer.echo(json.dumps(matrix_json(), indent=2))
    else:
        print_matrix(typer.echo)


class _Tell:
    """How the user wants the run told."""

    def __init__(
        self, fail_on: FailOn, folder: Path | None, as_json: bool, junit: Path | None, verbose: bool
    ) -> None:
        self.fail_on = fail_on
        self.folder = folder
        self.as_json = as_json
        self.junit = junit
        self.verbose = verbose


def _finish(
    side: Side,
    target: dict[str, Any],
    judgements: Sequence[Judgement],
    *,
    silence: str | None,
    eras: Sequence[Era],
    scenarios: Sequence[str],
    problems: Sequence[str],
    expected: Sequence[ExpectedFailure],
    started: datetime,
    redaction: Redaction,
    outputs: Sequence[ClientOutput],
    tell: _Tell,
) -> NoReturn:
    """Conclude, tell, and exit."""
    judgements = [
        replace(judgement, expected_failure=True)
        if is_bad(judgement) and any(entry.covers(judgement) for entry in expected)
        else judgement
        for judgement in judgements
    ]
    stale = stale_entries(expected, judgements)
    conclusion = conclude(
        [judgement for judgement in judgements if not judgement.expected_failure],
        silence=silence,
        stale=stale,
        fail_on=tell.fail_on,
    )
    report = Report(
        side=side,
        target=target,
        judgements=judgements,
        conclusion=conclusion,
        eras=eras,
        scenarios=scenarios,
        problems=problems,
        stale=stale,
        expected=expected,
        started=started,
        finished=datetime.now(UTC),
        redaction=redaction,
        outputs=outputs,
    )
    if tell.folder is not None:
        report.write_files(tell.folder)
    if tell.junit is not None:
        report.write_junit(tell.junit)
    if tell.as_json:
        typer.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        report.print_summary(Console(), verbose=tell.verbose)
    raise typer.Exit(EXIT_CODES[conclusion.verdict])


def _eras(wanted: Sequence[Era] | None) -> list[Era]:
    return [era for era in Era if not wanted or era in wanted]


def _chosen(ids: Sequence[str] | None, side: Side) -> frozenset[str]:
    known = {check.id for check in checks_of(side)}
    for check_id in ids or ():
        if check_id not in known:
            other = " (it judges the other side)" if check_id in load_checks() else ""
            raise UsageError(f"no {side} check {check_id!r}{other}; see `{SUITE} list {side}`")
    return frozenset(ids) if ids else frozenset(known)


def _expected(path: Path | None, side: Side, scenarios: Sequence[str]) -> list[ExpectedFailure]:
    return [] if path is None else list(load_expected_failures(path, side, scenarios))


def _header(text: str) -> tuple[str, str]:
    name, _, variable = text.partition("=")
    if not name or not variable:
        raise UsageError(f"--header takes NAME=ENVVAR, not {text!r}")
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"--header {name}: the environment variable {variable} is not set")
    return name, value


def _identity(name: str | None, version: str | None) -> dict[str, str]:
    identity = {"name": name, "version": version}
    return {key: value for key, value in identity.items() if value is not None}


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _progress(quiet: bool) -> Callable[[str], None]:
    """Return what tells on the terminal, in passing, which scenario is under way."""
    console = Console(stderr=True)

    def tell(what: str) -> None:
        if not quiet and console.is_terminal:
            console.print(f"… {what}", style="dim", soft_wrap=True, highlight=False)

    return tell


def main() -> None:
    """Run the command; a mistake of the user is one line and exit code 2."""
    # Stopped from outside, as by a CI job that is cancelled, it still stops what it started.
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except (UsageError, ScenarioError, ExpectedFailuresError) as error:
        _fail(str(error), USAGE_ERROR)
    except CannotStart as error:
        _fail(str(error), EXIT_CODES[Verdict.ERROR])
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", EXIT_CODES[Verdict.ERROR])


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)


def _fail(sentence: str, code: int) -> NoReturn:
    print(f"{SUITE}: {sentence}", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
