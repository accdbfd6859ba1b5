"""A client that takes several runs in one process, whatever it does before, between and after."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tool_chaining_conformance.client import programs
from tool_chaining_conformance.client.evidence import ClientEnd
from tool_chaining_conformance.client.programs import (
    CONTEXT,
    PROTOCOL_VERSION,
    SCENARIO,
    OneProcess,
)

from .support import HERE, suite

TOLD = {SCENARIO: "follow", PROTOCOL_VERSION: "2026-07-28", CONTEXT: "{}"}
Start = Callable[[str], OneProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Take a shell script for the client under test."""
    started: list[OneProcess] = []

    def run(script: str) -> OneProcess:
        started.append(OneProcess(["sh", "-c", script]))
        return started[-1]

    yield run
    for each in started:
        each.close()


def made(client: OneProcess, timeout: float = 10) -> ClientEnd:
    return client("http://127.0.0.1:1/mcp", TOLD, timeout)


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("sleep 60", "the client did not end in time and was stopped"),
        ("echo out of luck >&2; exit 0", "out of luck"),
    ],
)
def test_a_run_that_fails_is_told_and_the_next_is_made(start: Start, does: str, told: str) -> None:
    client = start(f'read told; case "$told" in *:1/*) {does};; esac; echo "{{}}"; cat >/dev/null')
    failed = made(client, 0.05 if "sleep" in does else 10)
    assert not failed.ended_well
    assert told in str(failed)
    assert client("http://127.0.0.1:2/mcp", TOLD, 10).ended_well


def idle(client: OneProcess) -> Any:
    assert client._process is not None
    return client._process


def waited(condition: Callable[[], Any]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return bool(condition())


def test_one_that_ended_between_two_runs_is_started_again(start: Start) -> None:
    client = start('read told; echo "{}"; exit 5')
    assert made(client).ended_well
    assert waited(lambda: idle(client).wait(0) is not None)
    assert made(client).ended_well


def test_a_second_answer_is_an_error_of_the_next_run(start: Start) -> None:
    client = start('read told; printf "{}\\nnoise\\n{}\\n"; read told; echo "{}"')
    assert made(client).ended_well
    assert waited(lambda: idle(client)._lines._queue.qsize() == 2)
    assert str(made(client)).endswith(f"the client answered {programs.FURTHER}")


def test_what_left_the_group_keeps_no_run_from_ending(start: Start, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    client = start(f"read told; setsid sh -c 'echo $$; echo {{}}; sleep 60; >{ended}' & cat")
    left = int(made(client).output.split()[0])
    client.close()
    assert not ended.exists()
    os.killpg(left, signal.SIGKILL)


# The program that the suite writes


@pytest.mark.ci
def test_the_program_that_is_written_is_the_example(tmp_path: Path) -> None:
    written = tmp_path / "client_under_test.py"
    assert (
        f" client --one-process -- python {written}\n"
        in suite("program", "--output", written).errors
    )
    text = written.read_text("utf-8")
    assert text == (HERE.parents[1] / "specs" / "examples" / written.name).read_text("utf-8")
    assert "choose another name" in suite("program", "--output", written).errors
    # It takes a client, and both ways of a run.
    command = ("--", sys.executable, written)
    case = ("client", "--scenario", "follow/absent-arguments", "--spec-version", "2026-07-28")
    assert suite(*case, *command).code == 0
    one = suite("client", "--scenario", "follow", "--one-process", *command)
    assert (one.code, "(it was not chosen)" in one.output) == (0, True), one.output
    written.write_text(text.replace("ended[-1]", "fails"), "utf-8")
    fails = suite(*case, "--one-process", *command)
    assert (fails.code, "NameError: name 'fails' is not defined" in fails.output) == (3, True)
