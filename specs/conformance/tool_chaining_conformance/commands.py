"""The work of `cli`'s commands. Imported when a command runs, since it loads the whole suite."""

import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from rich.console import Console
from rich.text import Text

from tool_chaining_conformance.client.programs import OneProcess, command_runner
from tool_chaining_conformance.client.run import name_of, run_client
from tool_chaining_conformance.client.script import ClientScript, load_client_scripts
from tool_chaining_conformance.errors import CannotStart, UsageError
from tool_chaining_conformance.names import TOKEN_VARIABLE
from tool_chaining_conformance.report.json import report_json
from tool_chaining_conformance.report.junit import write_junit
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.report import Report, shortened
from tool_chaining_conformance.report.summary import print_summary
from tool_chaining_conformance.server.draft import draft
from tool_chaining_conformance.server.run import run_server
from tool_chaining_conformance.server.scenario import ServerScenario, load_server_scenario
from tool_chaining_conformance.server.values import read_environment
from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.text import block


def need_jinja(what: str) -> None:
    """Raise UsageError if Jinja2, which makes the HTML page, is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        raise UsageError(f"{what} needs Jinja2; install it with `pip install 'jinja2>=3.1.6,<4'`")


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, for servers and clients."""

    spec_version: Sequence[Era] | None
    timeout: float
    strict: bool
    output_dir: Path | None
    as_json: bool
    junit: Path | None
    html: Path | None

    @property
    def eras(self) -> list[Era]:
        """The eras that the user chose."""
        return [era for era in Era if not self.spec_version or era in self.spec_version]

    def make_folders(self) -> None:
        """Make the folders of the reports. Raises UsageError if a report cannot be made."""
        if self.html is not None:
            need_jinja("--html")
        report = self.output_dir and self.output_dir / "report.json"
        files = {"--output-dir": report, "--junit": self.junit, "--html": self.html}
        for option, file in files.items():
            try:
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    # A run that ends early leaves no empty file.
                    is_new = not file.exists()
                    file.open("a").close()
                    if is_new:
                        file.unlink()
            except OSError as error:
                raise UsageError(f"{option}: cannot write {file}: {error.strerror}") from error


def judge_server(
    url: str | None,
    command: Sequence[str],
    header: Sequence[str],
    files: Sequence[Path],
    options: RunOptions,
) -> int:
    """Judge a server, write and print the chosen reports, and return the exit code."""
    scenarios = read_scenarios(files, over_http=url is not None)
    redaction = Redaction()
    target = server_target(url, command, header, options.timeout, redaction)
    options.make_folders()
    run = run_server(target, scenarios, options.eras, redaction, _progress(options))
    at = {"url": _without_credentials(url)} if url else {"command": list(command)}
    return _finish(Report.on(run, at, redaction, strict=options.strict), options)


def first_scenario(
    url: str | None, command: Sequence[str], header: Sequence[str]
) -> tuple[str, str]:
    """Return the text of a first scenario file, and its server's part of the command line.

    Raises CannotStart if the server does not answer.
    """
    redaction = Redaction()
    target = server_target(url, command, header, 30.0, redaction)
    try:
        text = draft(target)
    except TargetFailure as failure:
        raise CannotStart(shortened(str(failure), redaction)) from None
    at = ["--url", _without_credentials(url)] if url else ["--", *command]
    return text, " ".join(at)


def judge_client(
    command: Sequence[str], wanted: Sequence[str], options: RunOptions, *, one_process: bool
) -> int:
    """Judge a client, write and print the chosen reports, and return the exit code."""
    scripts = load_client_scripts()
    only = _cases(scripts, wanted)
    options.make_folders()
    programs = closing(OneProcess(command)) if one_process else nullcontext(command_runner(command))
    with programs as run_once:
        run = run_client(
            *(run_once, scripts, options.eras, options.timeout, _progress(options)),
            only=only,
        )
    at = {"command": list(command)}
    return _finish(Report.on(run, at, Redaction(), strict=options.strict), options)


def _finish(report: Report, options: RunOptions) -> int:
    """Write and print the chosen reports, and return the exit code."""
    if options.output_dir is not None:
        (options.output_dir / "report.json").write_text(report_json(report), "utf-8")
    if options.junit is not None:
        write_junit(report, options.junit)
    if options.html is not None:
        # Not at the top: Jinja2 is optional.
        from tool_chaining_conformance.report.page import page_of

        options.html.write_text(page_of([("", json.loads(report_json(report)))]), "utf-8")
    if options.as_json:
        print(report_json(report), end="")
    else:
        print_summary(report, Console())
    return report.run.stopped or report.conclusion.exit_code


def compare(files: Sequence[str], output: Path) -> None:
    """Write the page on several reports, each given as FILE or NAME=FILE.

    Raises UsageError for a file that is not a report, OSError if the page cannot be written.
    """
    need_jinja("report")
    from tool_chaining_conformance.report.page import page_of, read_report

    reports = []
    for each in files:
        name, equals, file = each.partition("=")
        if Path(each).exists() or not equals:
            name, file = "", each
        reports.append((name, read_report(Path(file))))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page_of(reports), "utf-8")


def server_target(
    url: str | None,
    command: Sequence[str],
    header: Sequence[str],
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
    headers = dict(_header(each) for each in header)
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
    return Target(url=url, command=command, headers=headers, timeout=timeout)


def read_scenarios(paths: Sequence[Path], *, over_http: bool) -> list[ServerScenario]:
    """Read scenario files. Raises ScenarioError for a mistake, or a variable that is not set.

    `over_http`: the server has a URL, so callers have headers.
    """
    scenarios = [load_server_scenario(path) for path in paths]
    if len({each.name for each in scenarios}) < len(scenarios):
        raise UsageError("two scenario files have the same name")
    for scenario in scenarios:
        read_environment(scenario, over_http=over_http)
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
    """Return a function that prints the progress of the run on standard error."""
    console = Console(stderr=True)

    def show(what: str) -> None:
        if not options.as_json:
            line = Text(f"… {block(what)}", style="dim")
            console.print(line, soft_wrap=True)

    return show
