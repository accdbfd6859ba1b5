"""How runs are made: chosen, in one process; crashes and floods."""

import sys
from pathlib import Path

import pytest

from banking_server.conformance.client.script import load_client_scripts

from .support import HERE, UNTESTABLE, suite

ONE_STEP = """
name: one
description: One step that may be repeated and followed, and nothing else.
steps:
  - id: order
    call: place_order
    arguments: {sku: chair, quantity: 500}
    repeatable: true
    follow: true
"""
MODERN = ("--spec-version", "2026-07-28")
FOLLOW = ("client", *MODERN, "--scenario", "follow")
CASES = next(len(each.cases) for each in load_client_scripts() if each.scenario == "follow")

ANY_CLIENT = f"""
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
import small_client
folder = Path(sys.argv[1])

def run(told):
    before(told)
    environment = {{
        "MCP_CONFORMANCE_PROTOCOL_VERSION": told["protocolVersion"],
        "MCP_CONFORMANCE_CONTEXT": json.dumps(told["context"]),
    }}
    code, output, errors = small_client.run(small_client.SmallClient, told["url"], environment)
    assert code == 0, errors
    return output.splitlines()[-1]

def before(told):
    (folder / f"{{told['context']['case']}}.{{os.getpid()}}").touch()

"""
MANY_RUNS = """
assert os.environ["MCP_CONFORMANCE_RUNS"] == "stdin"
for line in sys.stdin:
    print("some noise")
    print(run(json.loads(line)), flush=True)
"""


def client(folder: Path, *parts: str) -> list[str]:
    """A program that notes in a folder which case it runs, and in which process."""
    script = folder / "client.py"
    script.write_text(ANY_CLIENT + "".join(parts))
    noted = folder / "noted"
    noted.mkdir()
    return [sys.executable, str(script), str(noted)]


def noted(folder: Path) -> list[list[str]]:
    return [path.name.split(".") for path in (folder / "noted").iterdir()]


# In one process


CRASHES_ONCE = """
def before(told):
    (folder / f"{told['context']['case']}.{os.getpid()}").touch()
    if told["context"]["case"] == "absent-arguments":
        print("out of luck", file=sys.stderr)
        sys.exit(0)
"""


def test_a_crash_is_an_error_of_that_run_alone(tmp_path: Path) -> None:
    run = suite(
        *FOLLOW, "--one-process", "--json", "--", *client(tmp_path, CRASHES_ONCE, MANY_RUNS)
    )
    assert run.code == 3
    assert "out of luck" in run.output
    cases, processes = zip(*noted(tmp_path), strict=True)
    assert len(cases) == CASES
    assert len(set(processes)) == 2
    broken_off = [
        each["step"]
        for check in run.report["checks"]
        for each in check["judgements"]
        if each.get("broke_off")
    ]
    assert set(broken_off) == {"absent-arguments"}


# Chosen


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--scenario", "folow"], "no scenario 'folow'; did you mean follow"),
        (["--scenario", "follow/eror-result"], "did you mean follow/error-result"),
        (["--scenario", "error-result"], "no scenario 'error-result'; did you mean "),
    ],
)
def test_a_choice_that_cannot_be_made(arguments: list[str], complaint: str) -> None:
    run = suite("client", *arguments, "--", "never-started")
    assert run.code == 2
    assert complaint in run.errors


# What goes wrong


CRASHES_AT_THE_THIRD_CALL = f"""
import runpy, sys
sys.path.insert(0, {str(HERE)!r})
import small_server

class Crashing(small_server.SmallServer):
    def call(self, request):
        if self.calls == 2:
            sys.exit(7)
        return super().call(request)

small_server.serve_stdio(Crashing())
"""


def test_what_a_crash_kept_from_being_examined_is_an_error(tmp_path: Path) -> None:
    script, scenario = tmp_path / "server.py", tmp_path / "one.yaml"
    script.write_text(CRASHES_AT_THE_THIRD_CALL)
    scenario.write_text(ONE_STEP)
    arguments = ("server", *MODERN, "--scenario", scenario, "--json")
    run = suite(*arguments, "--", sys.executable, script)
    assert run.code == 3
    assert "exited with code 7" in run.report["reason"]
    assert run.statuses == {"SUCCESS", UNTESTABLE}
    held = {check["id"] for check in run.report["checks"] if check["status"] == "SUCCESS"}
    assert "tool-chaining-server-directive-well-formed" not in held  # Judged once, not to the end.
