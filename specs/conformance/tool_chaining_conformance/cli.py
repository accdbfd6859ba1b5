"""The command `tool-chaining-conformance`: its commands and their options.

What a command does is in `commands`, which is imported when the command runs.
"""

import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tool_chaining_conformance import SUITE, __version__
from tool_chaining_conformance.errors import ForPeople, UsageError
from tool_chaining_conformance.names import TOKEN_VARIABLE
from tool_chaining_conformance.specification import read_text
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.text import block

PROGRAMS = {
    False: ("client_under_test.py", "Replace `follow`, `User` and `Caller` by your client"),
    True: ("proxy_under_test.py", "Replace `command` and `asked_about` by those of your proxy"),
}
"""The programs around a client and a proxy, each with what to change."""

FILL_IN = "Write your arguments into it, and remove the # before expect, repeatable and follow"

app = typer.Typer(
    help="Check that a server or client conforms to tool chaining.",
    no_args_is_help=True,
    epilog=f"Example: {SUITE} server --scenario orders.yaml -- python orders.py",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# Hidden, here and below: Typer would write a type beside each argument. The help's text names it.
Command = Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", hidden=True)]
Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help=f"The server's URL. It gets the token in {TOKEN_VARIABLE}."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=ENVVAR",
        help="Send this HTTP header, with the value of ENVVAR. May be repeated.",
    ),
]
Output = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write to this new file, not the terminal.")
]

# Of a run, for servers and clients
SpecVersion = Annotated[
    list[Era] | None,
    typer.Option(metavar="REVISION", help="Test only this protocol revision. Default: both."),
]
Timeout = Annotated[
    float,
    typer.Option(
        min=0.1, metavar="SECONDS", help="Seconds that one reply, or one run of a client, may take."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 for a warning too: an unmet SHOULD.")
]
OutputDir = Annotated[
    Path | None,
    typer.Option("-o", "--output-dir", metavar="DIR", help="The folder for report.json."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print report.json instead of a summary.")]
JUnit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The file for a JUnit XML report.")
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="The file for an HTML page.")]


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


@app.command(epilog=f"Example: {SUITE} server --scenario orders.yaml -- python orders.py")
def server(
    command: Command = None,
    url: Url = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file that says which tools to call. May be repeated."),
    ] = None,
    header: Headers = None,
    spec_version: SpecVersion = None,
    timeout: Timeout = 30.0,
    strict: Strict = False,
    output_dir: OutputDir = None,
    as_json: AsJson = False,
    junit: JUnit = None,
    html: Html = None,
) -> None:
    """Judge a server, at --url or started as -- COMMAND.

    It calls only the tools that a scenario file names and, if the file allows it, the next tools
    that their results name. Without a file it calls no tool, and the verdict is inconclusive.
    """
    from tool_chaining_conformance.commands import RunOptions, judge_server

    options = RunOptions(spec_version, timeout, strict, output_dir, as_json, junit, html)
    raise typer.Exit(judge_server(url, command or (), header or (), scenario or (), options))


@app.command(
    "scenario", epilog=f"Example: {SUITE} scenario --output orders.yaml -- python orders.py"
)
def first_scenario(
    command: Command = None,
    url: Url = None,
    header: Headers = None,
    output: Output = None,
) -> None:
    """Draft a scenario file without calling a tool of the server.

    COMMAND starts the server, or --url names it.
    """
    from tool_chaining_conformance.commands import first_scenario as first

    _check_new(output)
    text, at = first(url, command or (), header or ())
    then = f"{SUITE} server --scenario {output} {at}"
    _write(text, output, f"{FILL_IN}, then run: {then}")


@app.command(epilog=f"Example: {SUITE} program --output my_client.py")
def program(
    output: Output = None,
    proxy: Annotated[
        bool, typer.Option("--proxy", help="For an intermediary, such as a proxy.")
    ] = False,
) -> None:
    """Write a Python program for your client under test."""
    _check_new(output)
    name, replace = PROGRAMS[proxy]
    run = f"{SUITE} client --one-process -- python {output}"
    _write(read_text(f"examples/{name}"), output, f"{replace}, then run: {run}")


def _check_new(output: Path | None) -> None:
    if output is not None and output.exists():
        raise UsageError(f"--output {output}: the file exists; choose another name")


def _write(text: str, output: Path | None, what_next: str) -> None:
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
        typer.echo(f"Wrote {output}. {what_next}", err=True)


@app.command(epilog=f"Example: {SUITE} client --one-process -- python my_client.py")
def client(
    command: Command = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this script, or SCRIPT/CASE. May be repeated."),
    ] = None,
    one_process: Annotated[
        bool, typer.Option("--one-process", help="Start the program once for all runs.")
    ] = False,
    spec_version: SpecVersion = None,
    timeout: Timeout = 30.0,
    strict: Strict = False,
    output_dir: OutputDir = None,
    as_json: AsJson = False,
    junit: JUnit = None,
    html: Html = None,
) -> None:
    """Judge a client, started as -- COMMAND.

    With --one-process, the suite starts COMMAND once, with MCP_CONFORMANCE_RUNS=stdin. Each line of
    its standard input is a case (the URL of a mock server, the revision, and a context with the
    tool to call first), and COMMAND prints a line for each. Without the option, the suite starts
    COMMAND URL for each case, which takes many times as long, with the case in the variables
    MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT.
    """
    if not command:
        raise UsageError("give the client as -- COMMAND; the mock server's URL is appended to it")
    from tool_chaining_conformance.commands import RunOptions, judge_client

    options = RunOptions(spec_version, timeout, strict, output_dir, as_json, junit, html)
    raise typer.Exit(judge_client(command, scenario or (), options, one_process=one_process))


@app.command(epilog=f"Example: {SUITE} report Ours=ours.json Theirs=theirs.json --output both.html")
def report(
    files: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]FILE", hidden=True),
    ],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The HTML page to write.")],
) -> None:
    """Show reports side by side on one HTML page.

    FILE is a report.json, and NAME the name of its column.
    """
    from tool_chaining_conformance.commands import compare

    compare(files, output)


class _Unread(io.FileIO):
    """A pipe whose reader may go away, as `| head -1` does. The verdict stays what it is."""

    def write(self, data: Any) -> int:
        """Write, or discard what nobody reads."""
        try:
            return super().write(data)
        except OSError as error:
            # Discard the rest, or Python would try to write it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError):
                raise
            return len(data)


def _let_readers_go() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__") and not stream.isatty():
            pipe = io.BufferedWriter(_Unread(stream.fileno(), "w", closefd=False))
            lines = stream.line_buffering
            text = io.TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=lines)
            setattr(sys, name, text)


def main() -> None:
    """Run the command; a mistake of the user is one line and exit code 2."""
    _let_readers_go()
    # If a CI job is cancelled, for example, the suite must stop the programs that it started.
    for stops in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stops, lambda number, frame: sys.exit(128 + number))
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except ForPeople as error:
        print(f"{SUITE}: {block(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{SUITE}: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(3)
