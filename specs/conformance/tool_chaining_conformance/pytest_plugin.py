"""The checks of a server as pytest tests, one test for each check: `specs/conformance/README.md`.

A check that failed is a failed test. If the server crashed or hung, all tests fail. A WARNING is a
passed test with a warning. A check that was not exercised is skipped with the reason. One more test
fails unless the verdict is `conformant`, so that no scenario that went wrong passes.
"""

import fcntl
import pickle
import shlex
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tool_chaining_conformance.commands import read_scenarios, server_target
from tool_chaining_conformance.errors import ScenarioError
from tool_chaining_conformance.report.judgement import Status
from tool_chaining_conformance.report.junit import failure_text
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.report.verdict import Verdict
from tool_chaining_conformance.requirements import checks_of
from tool_chaining_conformance.server.run import run_server
from tool_chaining_conformance.target.era import Era

JUDGE = pytest.StashKey[Callable[[], Report]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("tool chaining")
    group.addoption("--chaining-server", help="The server to judge: a command, or a URL.")
    group.addoption("--chaining-scenario", action="append", default=[], help="A scenario file.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add a test for each check of servers, if a server is given."""
    if server := session.config.getoption("--chaining-server"):
        try:
            files, shared = session.config.getoption("--chaining-scenario"), None
            if hasattr(session.config, "workerinput"):
                shared = Path(session.config.option.basetemp).parent
            judge = _judge_of(server, files, shared)
        except ScenarioError as error:
            raise pytest.UsageError(str(error)) from error
        session.stash[JUDGE] = judge
        items += [CheckTest.from_parent(session, name=each.id) for each in checks_of("server")]
        items.append(VerdictTest.from_parent(session, name="verdict"))


def _judge_of(server: str, files: list[str], shared: Path | None) -> Callable[[], Report]:
    """Return a function that judges the server once, at its first call. Raises ScenarioError.

    `shared` is the folder of all processes that run these tests, if there are several.
    """
    url = server if server.startswith(("http://", "https://")) else None
    scenarios = read_scenarios([Path(file) for file in files], over_http=url is not None)
    redaction = Redaction()
    target = server_target(url, () if url else shlex.split(server), (), 30.0, redaction)

    @cache
    def judge() -> Report:
        run = run_server(target, scenarios, list(Era), redaction, lambda what: None)
        return Report.on(run, {}, redaction)

    if shared is None:
        return judge

    @cache
    def judge_once() -> Report:
        # The workers of pytest-xdist share one run. Their folder belongs to this user alone.
        with (shared / "chaining-report").open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if written := file.read():
                report: Report = pickle.loads(written)  # noqa: S301
                return report
            pickle.dump(judge(), file)
            file.flush()
            return judge()

    return judge_once


class ReportTest(pytest.Item):
    """A test of the one run."""

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the heading of a failure."""
        return "tool chaining", None, self.name


class VerdictTest(ReportTest):
    """The verdict on the server."""

    def runtest(self) -> None:
        """Fail if the verdict is not `conformant`."""
        conclusion = self.session.stash[JUDGE]().conclusion
        if conclusion.verdict is not Verdict.CONFORMANT:
            pytest.fail(f"{conclusion.verdict}: {conclusion.reason}", pytrace=False)


class CheckTest(ReportTest):
    """One check, on all protocol revisions that the server speaks."""

    def runtest(self) -> None:
        """Fail, warn or skip, by the report on the check."""
        report = self.session.stash[JUDGE]()
        results = [result for result in report.results if result.check.id == self.name]
        worst = max(results, key=lambda result: result.severity)
        if worst.status is Status.FAILURE or worst.crashed:
            pytest.fail(failure_text(report, worst), pytrace=False)
        if worst.status is Status.WARNING:
            warnings.warn(failure_text(report, worst), stacklevel=1)
        if worst.status is Status.SKIPPED:
            pytest.skip(failure_text(report, worst))
