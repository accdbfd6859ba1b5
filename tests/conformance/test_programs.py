"""A client that takes several runs in one process, whatever it does before, between and after."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from banking_server.conformance.client import programs
from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.programs import (
    CONTEXT,
    PROTOCOL_VERSION,
    SCENARIO,
    OneProcess,
)
from banking_server.conformance.jobs import in_order
from banking_server.conformance.target.child_process import CannotStart, ChildProcess

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


def test_a_run_that_has_no_end_is_stopped_and_the_next_is_made(start: Start) -> None:
    client = start('read told; case "$told" in *:1/*) sleep 60;; esac; echo "{}"; cat >/dev/null')
    hung = made(client, 0.05)
    assert str(hung) == "the client did not end in time and was stopped"
    assert client("http://127.0.0.1:2/mcp", TOLD, 10).went_on


def test_the_exit_code_of_a_crash_is_that_of_its_run(start: Start) -> None:
    end = made(start("read told; echo 'out of luck' >&2; exit 3"))
    assert str(end) == "the client exited with code 3; its last words: out of luck"


def test_one_that_takes_no_run_is_an_error_of_that_run(start: Start) -> None:
    client = start('read told; exec <&-; echo "{}"; sleep 0.1')
    assert made(client).went_on
    end = made(client)
    assert end.exit_code == 1
    assert "before it answered" in str(end)


def waited(condition: Callable[[], Any]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return bool(condition())


def test_one_that_ended_between_two_runs_is_started_again_and_told_of(start: Start) -> None:
    client = start('read told; echo "{}"; exit 5')
    assert made(client).went_on
    worker = client._idle.get()
    assert waited(lambda: worker.ended)
    client._idle.put(worker)
    assert made(client).went_on
    assert client.ended_badly == ["at the end of its input the client exited with code 5"]


def test_a_second_answer_is_an_error_of_the_next_run(start: Start) -> None:
    client = start('read told; printf "{}\\nnoise\\n{}\\n"; read told; echo "{}"')
    assert made(client).went_on
    worker = client._idle.get()
    assert waited(lambda: worker._lines.qsize() == 2)
    client._idle.put(worker)
    assert str(made(client)).endswith(f"it answered {programs.FURTHER}")


def test_what_is_written_after_the_last_run_is_read_to_its_end(start: Start) -> None:
    client = start('read told; echo "{}"; cat >/dev/null; seq 1 50; echo "{}"')
    assert made(client).went_on
    client.close()
    assert client.ended_badly == [f"the client answered {programs.FURTHER}"]


def test_one_that_goes_on_without_input_is_stopped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "STOP_SECONDS", 0.05)
    client = start('read told; echo "{}"; sleep 60')
    assert made(client).went_on
    worker = client._idle.get()
    client._idle.put(worker)
    client.close()
    assert worker.ended


def test_an_interruption_in_the_middle_of_a_run_stops_its_process(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start('read told; echo "{}"; cat >/dev/null')
    assert made(client).went_on
    worker = client._idle.get()
    client._idle.put(worker)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(client)
    assert worker.ended


# Several at a time


def test_what_one_run_raises_ends_the_programs_of_the_others() -> None:
    begun = threading.Event()
    ended: list[int | None] = []

    def waits() -> None:
        with ChildProcess(["sleep", "60"], interactive=False, environment={}) as process:
            begun.set()
            ended.append(process.wait(30))

    def fails() -> None:
        assert begun.wait(10)
        raise CannotStart("no such program")

    with pytest.raises(CannotStart):
        list(in_order([fails, waits], 2))
    assert ended == [-9]
