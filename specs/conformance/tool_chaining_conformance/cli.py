"""The command `tool-chaining-conformance`."""

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_type_hints
from urllib.parse import urlsplit, urlunsplit

import typer
from rich.console import Console

from tool_chaining_conformance import SUITE, __version__
from tool_chaining_conformance.client.programs import OneProcess, command_runner, program_to_write
from tool_chaining_conformance.client.run import name_of, run_client
from tool_chaining_conformance.client.script import ClientScript, load_client_scripts
from tool_chaining_conformance.report.json import report_json, write_json
from tool_chaining_conformance.report.junit import write_junit
from tool_chaining_conformance.report.redaction import Redaction, redacted_command
from tool_chaining_conformance.report.report import Report, Shortening
from tool_chaining_conformance.report.summary import print_summary
from tool_chaining_conformance.report.verdict import EXIT_CODES, Verdict
from tool_chaining_conformance.requirements import Side, checks_of, load_checks
from tool_chaining_conformance.scenario_file import ScenarioError
from tool_chaining_conformance.server.draft import draft
from tool_chaining_conformance.server.run import PASSIVE, run_server
from tool_chaining_conformance.server.scenario import ServerScenario, load_server_scenario
from tool_chaining_conformance.server.values import check_environment
from tool_chaining_conformance.specification import read_yaml
from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.child_process import CannotStart
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.target.http import TOKEN_VARIABLE

USAGE_ERROR = 2
FILL_IN = "Write your arguments into it, and remove the # before expect, repeatable and follow"
TERMINATED = 143

app = typer.Typer(
    help="Check that a server or client conforms to tool chaining.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class UsageError(ScenarioError):
    """The command line is wrong; the message says why."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, for servers and clients."""

    spec_version: Annotated[
        list[Era] | None,
        typer.Option("--spec-version", help="Test only this protocol revision. Default: both."),
    ] = None
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="ID", help="Run only this check. May be repeated."),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds that one reply, or one run of a client, may take."),
    ] = 30.0
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", metavar="ID", help="Leave this check out. May be repeated."),
    ] = None
    output_dir: Annotated[
        Path | None,
        typer.Option("-o", "--output-dir", metavar="DIR", help="The folder for report.json."),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print report.json instead of a summary.")
    ] = False
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file for a JUnit XML report.")
    ] = None

    @property
    def eras(self) -> list[Era]:
        """The eras that the user chose."""
        return [era for era in Era if not self.spec_version or era in self.spec_version]

    def chosen(self, side: Side) -> frozenset[str]:
        """Return the ids of the checks that the user chose.

        Raises UsageError for an id that is not a check of this side.
        """
        known = {check.id for check in checks_of(side)}
        for check_id in (*(self.check or ()), *(self.skip or ())):
            if check_id not in known:
                other = " (it judges the other side)" if check_id in load_checks() else ""
                near = get_close_matches(check_id, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"see `{SUITE} list {side}`"
                raise UsageError(f"no {side} check {check_id!r}{other}; {hint}")
        return frozenset(self.check or known) - frozenset(self.skip or ())

    def make_folders(self) -> None:
        """Make the folders of the reports. Raises UsageError if a report cannot be written."""
        report = self.output_dir and self.output_dir / "report.json"
        for option, file in (("--output-dir", report), ("--junit", self.junit)):
            try:
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.open("a").close()
            except OSError as error:
                raise UsageError(f"{option}: cannot write {file}: {error.strerror}") from error


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `RunOptions` as options; it gets them as `options`."""
    hints = get_type_hints(RunOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(RunOptions)
    ]
    signature = inspect.signature(command)
    own = [each for each in signature.parameters.values() if each.name != "options"]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = RunOptions(**{each.name: given.pop(each.name) for each in shared})
        command(**given, options=options)

    # Typer reads the options from this signature.
    vars(run)["__signature__"] = signature.replace(parameters=[*own, *shared])
    return run


Command = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND…", help="The command that starts it.")
]
Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help=f"The server's URL. The token in {TOKEN_VARIABLE} is sent."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=ENVVAR",
        help="Send another HTTP header, with the value of this variable. May be repeated.",
    ),
]
Output = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write to this new file, not to the terminal.")
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{SUITE} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
@with_run_options
def server(
    command: Command = None,
    url: Url = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file that says which tools to call. May be repeated."),
    ] = None,
    header: Headers = None,
    *,
    options: RunOptions,
) -> None:
    """Judge a server, at --url or started as -- COMMAND.

    It calls only the tools that a scenario file names and, if the file allows it, those that their
    directives name. Without a file it calls no tool, and the verdict is inconclusive.
    """
    scenarios = read_scenarios(scenario or (), over_http=url is not None)
    names = [each.name for each in scenarios] or [PASSIVE]
    redaction = Redaction()
    target = server_target(url, command, header, options.timeout, redaction)
    chosen = options.chosen("server")
    options.make_folders()
    started = datetime.now(UTC)
    run = run_server(target, scenarios, options.eras, chosen, redaction, _progress(options))
    at = {"url": _without_credentials(url)} if url else {"command": redacted_command(command or ())}
    report = Report.on(run, target=at, scenarios=names, started=started, redaction=redaction)
    _finish(report, options)


@app.command("scenario")
def first_scenario(
    command: Command = None,
    url: Url = None,
    header: Headers = None,
    output: Output = None,
) -> None:
    """Write a first scenario file. No tool is called."""
    _check_new(output)
    redaction = Redaction()
    target = server_target(url, command, header, 30.0, redaction)
    try:
        text = draft(target)
    except TargetFailure as failure:
        _fail(Shortening(redaction).text(str(failure)), EXIT_CODES[Verdict.ERROR])
    at = ["--url", _without_credentials(url)] if url else ["--", *redacted_command(command or ())]
    then = f"{SUITE} server --scenario {output} {' '.join(at)}"
    _write(text, output, f"{FILL_IN}, then run: {then}")


@app.command()
def program(output: Output = None) -> None:
    """Write a Python program for your client under test."""
    _check_new(output)
    run = f"{SUITE} client --one-process -- python {output}"
    _write(program_to_write(), output, f"Fill it in, then run: {run}")


def _check_new(output: Path | None) -> None:
    if output is not None and output.exists():
        raise UsageError(f"--output {output}: the file exists; choose another name")


def _write(text: str, output: Path | None, what_next: str) -> None:
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
        typer.echo(f"Wrote {output}. {what_next}", err=True)


@app.command()
@with_run_options
def client(
    command: Command = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this script, or SCRIPT/CASE. May be repeated."),
    ] = None,
    one_process: Annotated[
        bool, typer.Option("--one-process", help="Start the program once for all runs.")
    ] = False,
    *,
    options: RunOptions,
) -> None:
    """Judge a client, started as -- COMMAND URL for each case.

    The URL is that of a mock server. MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and
    MCP_CONFORMANCE_CONTEXT tell the client what to do: the context is JSON with the tool to call
    first and its arguments. With --one-process, COMMAND is started once, MCP_CONFORMANCE_RUNS is
    `stdin`, and the client answers each line of its standard input, a case, with a line.
    """
    if not command:
        raise UsageError("give the client as -- COMMAND; the mock server's URL is appended to it")
    scripts = load_client_scripts()
    chosen = options.chosen("client")
    only = _cases(scripts, scenario or ())
    redaction = Redaction()
    options.make_folders()
    started = datetime.now(UTC)
    programs = closing(OneProcess(command)) if one_process else nullcontext(command_runner(command))
    with programs as run_once:
        tell = _progress(options)
        run = run_client(run_once, scripts, options.eras, chosen, options.timeout, tell, only=only)
    names = [
        script.scenario
        for script in scripts
        if only is None or any(name_of(script, case) in only for case in script.cases)
    ]
    at = {"command": redacted_command(command)}
    report = Report.on(run, target=at, scenarios=names, started=started, redaction=redaction)
    _finish(report, options)


@app.command("list")
def list_checks(
    side: Annotated[
        Side | None, typer.Argument(help="List only the checks of servers, or of clients.")
    ] = None,
) -> None:
    """List every check with the requirements that it tests."""
    mutants = read_yaml("conformance/mutants.yaml")["mutants"]
    needs = read_yaml("conformance/checks.yaml")["needs"]
    sides: tuple[Side, ...] = ("server", "client") if side is None else (side,)
    for check in [check for each in sides for check in checks_of(each)]:
        only = "" if len(check.eras) == len(Era) else f"  {', '.join(check.eras)} only"
        typer.echo(f"{check.id}  {check.level}{only}")
        reads = "the messages" if check.reads == "wire" else "what the client prints"
        typer.echo(
            f"    reads {reads}, and needs {needs[check.needs] if check.needs else 'nothing'}"
        )
        for requirement in check.requirements:
            typer.echo(f"    {requirement.id}  {requirement.text}")
        for mutant in mutants:
            if mutant["check"] == check.id:
                typer.echo(f"    fails {mutant['name']}: {mutant['wrong']}")


def _finish(report: Report, options: RunOptions) -> NoReturn:
    """Write and print the chosen reports, and exit with the verdict's code."""
    if options.output_dir is not None:
        write_json(report, options.output_dir)
    if options.junit is not None:
        write_junit(report, options.junit)
    if options.as_json:
        typer.echo(report_json(report), nl=False)
    else:
        print_summary(report, Console())
    raise typer.Exit(EXIT_CODES[report.conclusion.verdict])


def server_target(
    url: str | None,
    command: list[str] | None,
    header: list[str] | None,
    timeout: float,
    redaction: Redaction,
) -> Target:
    """Return the target for the options; its credentials are redacted. Raises UsageError."""
    if (url is None) == (not command):
        raise UsageError("give either --url URL or -- COMMAND")
    if header and url is None:
        raise UsageError("--header needs --url: a server over stdio gets no headers")
    if url is not None and not _is_usable(url):
        raise UsageError("--url must begin with http:// or https://, and name a host and its port")
    headers = dict(_header(each) for each in header or ())
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if url and token and "authorization" not in map(str.lower, headers):
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise UsageError(
                f"the token in {TOKEN_VARIABLE} would go to {parts.hostname} unencrypted; use "
                "https, or allow it with --header Authorization=VARIABLE"
            )
        headers["Authorization"] = f"Bearer {token}"
    for value in headers.values():
        redaction.add(value)
        redaction.add(value.partition(" ")[2])
    if url is not None:
        redaction.add(urlsplit(url).password or "")
        redaction.add(urlsplit(url).query)
    return Target(url=url, command=command or (), headers=headers, timeout=timeout)


def read_scenarios(paths: Sequence[Path], *, over_http: bool) -> list[ServerScenario]:
    """Read scenario files. Raises ScenarioError for a mistake, or a variable that is not set.

    `over_http`: the server has a URL, so callers have headers.
    """
    scenarios = [load_server_scenario(path) for path in paths]
    if len({each.name for each in scenarios}) < len(scenarios):
        raise UsageError("two scenario files have the same name")
    for scenario in scenarios:
        check_environment(scenario, os.environ, over_http=over_http)
    return scenarios


def _cases(scripts: Sequence[ClientScript], wanted: Sequence[str]) -> frozenset[str] | None:
    """Return the chosen cases as `scenario/case`; None if the user chose none.

    A name is that of a case or of a scenario. Raises UsageError for another name.
    """
    cases: dict[str, list[str]] = {}
    for script in scripts:
        names = [name_of(script, case) for case in script.cases]
        cases |= {script.scenario: names} | {name: [name] for name in names}
    for name in wanted:
        if name not in cases:
            near = get_close_matches(name, cases, n=3, cutoff=0.5)
            known = ", ".join(script.scenario for script in scripts)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {known}"
            raise UsageError(f"no scenario {name!r}; {hint}")
    return frozenset(case for name in wanted for case in cases[name]) or None


def _header(text: str) -> tuple[str, str]:
    """Return the name and the value of a header from NAME=ENVVAR. Raises UsageError."""
    name, _, variable = text.partition("=")
    if not name or not variable:
        raise UsageError(f"--header takes NAME=ENVVAR, not {text!r}")
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"--header {name}: the environment variable {variable} is not set")
    return name, value


def _is_usable(url: str) -> bool:
    """Return whether a request can be sent to a URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _progress(options: RunOptions) -> Callable[[str], None]:
    """Return a function that prints the running scenario on a terminal."""
    console = Console(stderr=True)

    def show(what: str) -> None:
        if not options.as_json and console.is_terminal:
            console.print(f"… {what}", style="dim", soft_wrap=True, highlight=False)

    return show


def main() -> None:
    """Run the command; a mistake of the user is one line and exit code 2."""
    # If a CI job is cancelled, for example, the suite must stop the programs that it started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))
    try:
        app()
    except ScenarioError as error:
        _fail(str(error), USAGE_ERROR)
    except CannotStart as error:
        _fail(str(error), EXIT_CODES[Verdict.ERROR])
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", EXIT_CODES[Verdict.ERROR])


def _fail(sentence: str, code: int) -> NoReturn:
    print(f"{SUITE}: {sentence}", file=sys.stderr)
    raise SystemExit(code)
