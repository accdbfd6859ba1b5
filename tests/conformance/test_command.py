"""The command line: verdicts and exit codes, reports, what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from tool_chaining_conformance.server.scenario import load_server_scenario

from ..kit.command import end_with_the_tests
from .server_mutants import SERVER_MUTANTS
from .small_server import Refusal, SmallServer, tool
from .support import (
    HERE,
    OF_INTERMEDIARIES,
    ONE_STEP,
    REPORT,
    SERVER_COMMAND,
    SHOP,
    UNTESTABLE,
    Ended,
    serving,
    stdio_server,
    suite,
)

PASSES_EXACTLY = "tool-chaining-client-passes-arguments-exactly"


# What conforms


def test_a_conforming_server_over_stdio() -> None:
    run = suite("server", "--scenario", SHOP, "--json", "--", *SERVER_COMMAND)
    assert run.code == 0, run.output
    report = run.report
    assert report["verdict"] == "conformant"
    assert report["spec_versions"] == ["2026-07-28", "2025-11-25"]
    assert report["target"] == {"command": SERVER_COMMAND, "name": "shop", "version": "1"}
    assert run.statuses == {"SUCCESS", "SKIPPED"}
    # On 2025-11-25 only a task is an interim result, and the shop has none.
    assert run.skipped == {
        *OF_INTERMEDIARIES,
        "tool-chaining-server-no-directive-on-interim-result",
    }
    assert not list(REPORT.iter_errors(report))


# What does not


def test_without_a_scenario_nothing_is_called() -> None:
    server = SmallServer()
    with serving(server) as url:
        run = suite("server", "--url", url, "--json")
    assert run.code == 4
    assert run.report["verdict"] == "inconclusive"
    assert server.calls == 0
    assert run.statuses == {"SUCCESS", UNTESTABLE}


def scenario(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    return path


def test_nothing_is_repeated_or_followed_without_leave(tmp_path: Path) -> None:
    called: list[str] = []

    class Watched(SmallServer):
        def run(self, name: str, arguments: Any, request: Any) -> Any:
            called.append(name)
            return super().run(name, arguments, request)

    path = scenario(tmp_path, ONE_STEP)
    with serving(Watched()) as url:
        run = suite("server", "--url", url, "--scenario", path, "--json")
    assert called == ["place_order", "place_order"]  # Once in each era.
    assert run.code == 4
    seen = {check["id"]: check["seen"] for check in run.report["checks"]}
    assert "`repeatable: true`" in seen["tool-chaining-server-accepts-later-version"]
    assert "`follow: true`" in seen["tool-chaining-server-chain-within-default-limit"]


LOCKED = """
    def written(self, message):
        log = small_server.json.dumps({"id": message["id"], "level": "info"})
        return f"{log}\\n{super().written(message)}"

    def call(self, request):
        if request.params["name"] == "place_order":
            print("working on it", file=sys.stderr)
            print("the database is locked", file=sys.stderr, flush=True)
            text = {"type": "text", "text": "We could not place the order."}
            return {"content": [text], "isError": True, "resultType": "complete"}
        return super().call(request)
"""


def test_a_step_that_brings_no_directive_says_why(tmp_path: Path) -> None:
    steps = ONE_STEP + "    expect: {nextTool: ask_manager}\n  - {id: slip, call: plac_order}\n"
    arguments = ("--scenario", scenario(tmp_path, steps), "--spec-version", "2026-07-28")
    run = suite("server", *arguments, "--", *stdio_server(tmp_path, LOCKED))
    assert run.code == 4  # It is no finding about the server.
    note = """\
note: one, 2026-07-28, step order: expected nextTool ask_manager, saw isError true with no directive
  | text of the result: We could not place the order.
  | the server wrote to standard error:
  | working on it
  | the database is locked
note: one, 2026-07-28, step slip: expected a directive, saw error -32602 "Unknown tool: plac_order"
  | the list of tools has no 'plac_order'; did you mean place_order?
"""
    assert run.output.startswith(note)


def test_a_server_that_speaks_one_era_can_be_conformant() -> None:
    class ModernOnly(SmallServer):
        def initialize(self) -> Any:
            raise Refusal(-32022, "Unsupported protocol version")

    with serving(ModernOnly()) as url:
        arguments = ("server", "--url", url, "--scenario", SHOP, "--json")
        both = suite(*arguments)
        wrong = suite(*arguments, "--spec-version", "2025-11-25")
    assert both.code == 0
    assert both.report["spec_versions"] == ["2026-07-28"]
    assert both.statuses == {"SUCCESS", "SKIPPED"}
    assert wrong.code == 3


# A first scenario file


def test_a_first_scenario_calls_nothing_and_can_be_loaded(tmp_path: Path) -> None:
    server, path = SmallServer(), tmp_path / "first.yaml"
    with serving(server) as url:
        run = suite("scenario", "--url", url, "--output", path)
        assert suite("scenario", "--url", url).output == path.read_text()
        there = suite("scenario", "--url", url, "--output", path)
        assert (there.code, "the file exists" in there.errors) == (2, True)
    assert server.calls == 0
    assert (run.code, run.output, f"{path} --url {url}\n" in run.errors) == (0, "", True)
    assert [step.call for step in load_server_scenario(path).steps] == ["login"]
    # Without the marks, every tool is a step.
    every = path.read_text().replace("\n#  ", "\n  ")
    steps = yaml.safe_load(every)["steps"]
    assert [step["call"] for step in steps] == [tool["name"] for tool in SmallServer.tools]
    assert steps[1]["arguments"] == {"sku": "TEXT", "quantity": 1}


def test_the_first_step_of_a_draft_begins_a_chain() -> None:
    class Mentioned(SmallServer):
        tools = (
            tool("queue", [], description="Where somebody waits."),
            tool("größe", [], description="Reserves a seat; `queue` follows.", annotations={}),
        )

    with serving(Mentioned()) as url:
        draft = suite("scenario", "--url", url).output
    assert [each["call"] for each in yaml.safe_load(draft)["steps"]] == ["größe"]
    assert '"größe"' in draft


# Secrets


def test_a_header_is_sent_and_shown_nowhere(tmp_path: Path) -> None:
    token = "xyz-very-secret"
    mutant = SERVER_MUTANTS["names-unlisted-tool"]()
    with serving(mutant, ("authorization", f"Bearer {token}")) as url:
        arguments = ["server", "--url", url, "--scenario", SHOP, "-o", tmp_path]
        unsigned = suite(*arguments)
        refused = suite(*arguments, environment={"MCP_TOKEN": "old-and-secret"})
        junit = ("--junit", tmp_path / "junit.xml")
        run = suite(*arguments, *junit, environment={"MCP_TOKEN": token})
        header = ("--header", "Authorization=SHOP_TOKEN")
        same = suite(*arguments, *header, environment={"SHOP_TOKEN": f"Bearer {token}"})
    says = '; the server says "The token expired"\n'
    assert (unsigned.code, refused.code) == (3, 3)
    signs_in = "HTTP 401; the token in MCP_TOKEN, or --header NAME=VARIABLE, signs in"
    assert f"{signs_in}{says}" in unsigned.output
    was_refused = "HTTP 401; the Authorization that was sent (MCP_TOKEN, --header) was refused"
    assert f"{was_refused}{says}" in refused.output
    assert "old-and-secret" not in refused.output
    assert (run.code, same.code) == (1, 1)
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    for text in (run.output, run.errors, same.output, *written):
        assert token not in text
    remote = suite("server", "--url", "http://192.0.2.1/mcp", environment={"MCP_TOKEN": token})
    assert "would go to 192.0.2.1 unencrypted" in remote.errors


# Usage


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["server"], "give either --url URL or -- COMMAND"),
        (["server", "--url", "http://x", "--", "x"], "give either"),
        (["server", "--url", "ftp://x"], "must begin with http"),
        (["server", "--url", "http://u:hunter2@x:y"], "name a host and its port\n"),
        (["server", "--scenario", SHOP, "--scenario", SHOP, "--", "x"], "have the same name"),
        (["server", "--url", "http://x", "--header", "A=NO_SUCH_VARIABLE"], "is not set"),
        (["server", "--header", "A=PATH", "--", "x"], "--header needs --url"),
        (["server", "--scenario", "/no/such.yaml", "--", "x"], "cannot be read"),
        (["server", "--scenario", "/dev/zero", "--", "x"], "it has more than 1,000,000 bytes"),
        (["client"], "give the client as -- COMMAND"),
        (["client", "--scenario", "folow", "--", "x"], "'folow'; did you mean follow"),
        (["client", "--scenario", "follow/eror-result", "--", "x"], "mean follow/error-result"),
        (
            ["server", "-o", "/dev/null", "--", "x"],
            "--output-dir: cannot write /dev/null/",
        ),
        (["server", "--junit", "/tmp", "--", "x"], "--junit: cannot write /tmp: Is a directory"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], complaint: str) -> None:
    run = suite(*arguments)
    assert run.code == 2
    assert complaint in run.errors
    assert "hunter2" not in run.errors
    assert len(run.errors.splitlines()) == 1


def test_a_disk_that_is_full_ends_a_run_with_a_line() -> None:
    full = OSError(28, "No space left on device")
    with mock.patch("tool_chaining_conformance.commands.run_server", side_effect=full):
        ended = suite("server", "--", "x")
    assert ended == Ended(3, "", "tool-chaining-conformance: No space left on device\n")


def test_a_reader_who_has_seen_enough_changes_no_verdict(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    for more in ([], ["--json"]):
        judge = ("server", "--scenario", SHOP, *more, "--", *SERVER_COMMAND)
        words = [sys.executable, "-m", "tool_chaining_conformance", *map(str, judge)]
        assert subprocess.run(words, stdout=write, stderr=write).returncode == 0
    os.close(write)


@pytest.mark.parametrize("proxy", ["socks://ada:hidden@x:1", "socks5://x:1", "http://x:bad"])
def test_a_proxy_variable_that_cannot_be_used_is_named(proxy: str) -> None:
    environment = {"HTTPS_PROXY": proxy}
    ended = suite("scenario", "--url", "https://192.0.2.1/mcp", environment=environment)
    assert ended.code == 3
    assert "HTTPS_PROXY names a proxy that cannot be used here" in ended.errors
    assert "hidden" not in ended.errors


SERVER_HANGS = """
    def call(self, request):
        {hang}
"""
CLIENT_HANGS = """
import sys
sys.path.insert(0, {root!r})
from tests.conformance import host, small_client
class Client(small_client.SmallClient):
    def obstacle(self, *arguments):
        return {hang} if self.context["case"] == "last-page" else super().obstacle(*arguments)
print(host.run(Client, sys.argv[-1], __import__("os").environ)[1])
"""


@pytest.mark.parametrize(("side", "stops"), [("server", signal.SIGTERM), ("client", signal.SIGINT)])
def test_a_run_that_is_stopped_ends_what_it_started_and_keeps_what_was_judged(
    side: str, stops: signal.Signals, tmp_path: Path
) -> None:
    child, program = tmp_path / "child.pid", tmp_path / "client.py"
    write = f"__import__('pathlib').Path({str(child)!r}).write_text(str(__import__('os').getpid()))"
    hang = f"({write}, __import__('time').sleep(60))"
    program.write_text(CLIENT_HANGS.format(root=str(HERE.parents[1]), hang=hang))
    server = ["--scenario", SHOP, "--", *stdio_server(tmp_path, SERVER_HANGS.format(hang=hang))]
    cases = ["--scenario", "follow", "--scenario", "lists", "--", sys.executable, program]
    files = ["-o", tmp_path, "--junit", tmp_path / "junit.xml"]
    command = [sys.executable, "-m", "tool_chaining_conformance", side, *files]
    running = subprocess.Popen(
        list(map(str, [*command, *(server if side == "server" else cases)])),
        stdout=subprocess.PIPE,
        cwd=HERE.parents[1],
        text=True,
        preexec_fn=end_with_the_tests,
    )
    try:
        while not (child.exists() and child.read_text()):
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(stops)
        output, _ = running.communicate(timeout=20)
    finally:
        running.terminate()  # Killed, it would leave the server behind.
    assert running.returncode == 128 + stops
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)
    # What came before is judged, and the rest is named.
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == "error"
    passed = {check["id"] for check in report["checks"] if check["status"] == "SUCCESS"}
    assert passed >= {"tool-chaining-server-advertises" if side == "server" else PASSES_EXACTLY}
    assert "not testable: the run was stopped: " in output
    assert "the run was stopped" in (tmp_path / "junit.xml").read_text()


def test_a_run_says_how_far_it_is_and_what_a_crashed_client_wrote(tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text("raise RuntimeError('out of paper')")
    cases = ("--scenario", "follow/error-result", "--scenario", "follow/exact-arguments")
    found = suite("client", *cases, "--", sys.executable, client)
    assert "  | RuntimeError: out of paper\n" in found.output
    assert "2026-07-28: 1 of 2 runs" in found.errors
