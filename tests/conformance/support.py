"""What the tests of the suite share: targets, and runs of the suite against them."""

import contextlib
import io
import json
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest import mock

from jsonschema import Draft202012Validator

from tool_chaining_conformance import cli
from tool_chaining_conformance.client.evidence import ClientEnd
from tool_chaining_conformance.client.run import run_client
from tool_chaining_conformance.client.script import ClientScript, load_client_scripts
from tool_chaining_conformance.report.judgement import Judgement, collapse
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.run import Run
from tool_chaining_conformance.server.run import run_server
from tool_chaining_conformance.server.scenario import ServerScenario, load_server_scenario
from tool_chaining_conformance.specification import SPECS
from tool_chaining_conformance.target.channel import Target
from tool_chaining_conformance.target.era import Era

from ..kit.serving import Handler
from ..kit.serving import serving as served_by_handler
from .host import run as run_host
from .small_client import SmallClient
from .small_server import SmallServer

HERE = Path(__file__).parent
SHOP = HERE / "shop.yaml"
ONE_STEP = """
name: one
description: One step.
steps:
  - id: order
    call: place_order
    arguments: {sku: chair, quantity: 500}
"""
"""A scenario for that shop, to begin with."""
REPORT = Draft202012Validator(
    json.loads((SPECS / "conformance" / "schemas" / "report.schema.json").read_text("utf-8"))
)
SERVER_COMMAND = [sys.executable, str(HERE / "small_server.py")]


def stdio_server(folder: Path, members: str) -> list[object]:
    """Return the command of a small server with these members of a class, in place of its own."""
    program = folder / "server.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport small_server\n"
        f"class Changed(small_server.SmallServer):\n{members}\n"
        "small_server.serve_stdio(Changed())\n"
    )
    return [sys.executable, program]


UNTESTABLE = "UNTESTABLE"

OF_INTERMEDIARIES = {
    "tool-chaining-server-intermediary-renames",
    "tool-chaining-server-intermediary-removes-directive",
    "tool-chaining-server-intermediary-withholds-directive",
}
"""Checks that do not apply to a server with tools of its own."""


@cache
def scripts() -> tuple[ClientScript, ...]:
    return load_client_scripts()


@cache
def scenario_of(kind: type[SmallServer]) -> ServerScenario:
    """Return how a server of this kind is exercised."""
    return load_server_scenario(HERE / kind.scenario)


VECTORS = "directives"
"""The script whose cases are the vectors: a third of all."""


@contextmanager
def serving(server: Any, required_header: tuple[str, str] | None = None) -> Iterator[str]:
    """Serve over HTTP while the block lasts; gives the URL."""
    sessions: dict[str | None, Any] = {}
    waiting: dict[str, SimpleQueue[Any]] = {}

    class Serving(Handler):
        streaming = False

        def do_POST(self) -> None:
            message = self.message()
            if required_header and self.headers.get(required_header[0]) != required_header[1]:
                why = 'Bearer error="invalid_token", error_description="The token expired"'
                return self.answer(401, headers={"www-authenticate": why})
            session = self.headers.get("mcp-session-id")
            if message.get("method") == "initialize":
                session = uuid.uuid4().hex
                sessions[session] = message["params"]["capabilities"]
            if "method" not in message:
                waiting.pop(message["id"]).put(message.get("result") or {})
                return self.answer(202)
            answer = server.handle(message, sessions.get(session, {}), self.ask)
            if answer is None:
                return self.answer(202)
            if self.streaming:
                return self.event(answer)
            known = {"mcp-session-id": session} if session else {}
            headers = {"content-type": "application/json", **known}
            return self.answer(200, server.written(answer).encode(), headers)

        def ask(self, params: Any) -> Any:
            self.begin_stream()
            self.streaming = True
            question, box = uuid.uuid4().hex, SimpleQueue[Any]()
            waiting[question] = box
            asked = {"method": "elicitation/create", "params": params}
            self.event({"jsonrpc": "2.0", "id": question, **asked})
            return box.get(timeout=10)

        def event(self, message: Any) -> None:
            event = f": comment\nevent: message\ndata: {server.written(message)}\n\n"
            self.wfile.write(event.encode())
            self.wfile.flush()

        def do_DELETE(self) -> None:
            sessions.pop(self.headers.get("mcp-session-id"), None)
            super().do_DELETE()

    with served_by_handler(Serving) as origin:
        yield f"{origin}/mcp"


def examine_server(
    kind: type[SmallServer] = SmallServer,
    eras: Sequence[Era] = tuple(Era),
    scenarios: Sequence[ServerScenario] | None = None,
) -> Run:
    with serving(kind()) as url:
        return run_server(
            Target(url=url, timeout=20),
            [scenario_of(kind)] if scenarios is None else scenarios,
            eras,
            Redaction(),
            lambda what: None,
        )


def examine_client(
    kind: Any = SmallClient,
    eras: Sequence[Era] = tuple(Era),
    *,
    but: frozenset[str] = frozenset(),
    only: frozenset[str] | None = None,
) -> Run:
    """Judge a client in this process without the scripts `but`, in the cases `only` if given."""

    def run_once(url: str, environment: Any, timeout: float) -> ClientEnd:
        return ClientEnd(*run_host(kind, url, environment))

    chosen = [script for script in scripts() if script.scenario not in but]
    return run_client(run_once, chosen, eras, 20, lambda what: None, only=only)


def examine_program(run_once: Callable[[str, Mapping[str, str]], str], eras: Sequence[Era]) -> Run:
    """Judge a client of which a function, given URL and variables, returns what it prints."""

    def run(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        return ClientEnd(0, run_once(url, environment), "")

    return run_client(run, scripts(), eras, 30, lambda what: None)


def statuses(judgements: Sequence[Judgement]) -> dict[str, str]:
    """Return the worst status of every check over all eras, untestable apart from skipped."""
    worst: dict[str, Judgement] = {}
    for result in collapse(judgements):
        known = worst.get(result.check.id)
        if known is None or result.severity > known.severity:
            worst[result.check.id] = result
    return {
        check: UNTESTABLE if result.untestable else str(result.status)
        for check, result in worst.items()
    }


@dataclass(frozen=True)
class Ended:
    """How one run of the command ended."""

    code: int
    output: str
    errors: str

    @property
    def report(self) -> dict[str, Any]:
        """The report that `--json` printed."""
        assert self.output, self.errors
        report: dict[str, Any] = json.loads(self.output)
        return report

    @property
    def skipped(self) -> set[str]:
        """The ids of the checks that do not apply."""
        return {check["id"] for check in self.report["checks"] if check["status"] == "SKIPPED"}

    @property
    def statuses(self) -> set[str]:
        return {
            UNTESTABLE if check.get("untestable") else check["status"]
            for check in self.report["checks"]
        }


def suite(*arguments: object, environment: dict[str, str] | None = None) -> Ended:
    """Run the command, in this process for speed."""
    output, errors = io.StringIO(), io.StringIO()
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    with (
        mock.patch.object(sys, "argv", ["tool-chaining-conformance", *map(str, arguments)]),
        mock.patch.dict("os.environ", environment or {}),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            for each, handler in handlers.items():
                signal.signal(each, handler)
    return Ended(code, output.getvalue(), errors.getvalue())
