"""A fault that repeats does not fill the disk with what is logged about it."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from banking_server.server.log import A_MINUTE, RepeatedFaults

from ..kit.command import PATIENCE

pytestmark = pytest.mark.quick


@pytest.fixture
def seconds() -> list[float]:
    """The log's clock."""
    return [0.0]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, seconds: list[float]) -> Iterator[logging.Logger]:
    """What is written here is in `caplog`, as it comes through the filter."""
    made, only_some = logging.getLogger("tests.log"), RepeatedFaults(lambda: seconds[0])
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(only_some)
    yield made
    caplog.handler.removeFilter(only_some)


def test_one_fault_has_so_many_messages_a_minute(
    log: logging.Logger, seconds: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    def complain(times: int) -> list[str]:
        caplog.clear()
        for number in range(times):
            log.warning(f"Host {number} is unknown")
        return caplog.messages

    *first, last = complain(1000)
    assert first == [f"Host {number} is unknown" for number in range(A_MINUTE)]
    assert last == f"Host {A_MINUTE} is unknown (more of the same is left out for a minute)"
    seconds[0] = 59.0
    assert complain(1) == []
    seconds[0] = 60.0
    left_out = 1001 - A_MINUTE - 1
    assert complain(1) == [f"Host 0 is unknown ({left_out} more of the same were left out)"]
    seconds[0] = 120.0
    assert complain(1) == ["Host 0 is unknown"]


LOUD = """
import logging
from banking_server.server.build import configure_logging
configure_logging("INFO")
for number in range(5_000):
    logging.getLogger("banking_server").info("%d %s", number, "x" * 1_000)
print("It goes on.", flush=True)
input()
"""


def test_a_pipe_that_nobody_reads_stops_nothing_and_what_is_left_out_is_counted() -> None:
    command, pipe = [sys.executable, "-c", LOUD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "It goes on.\n"
        _, log = program.communicate("\n", timeout=PATIENCE)
    written = re.findall("^.* banking_server: [0-9]+ x+$", log, re.MULTILINE)
    left_out = re.findall("^([0-9]+) messages were left out", log, re.MULTILINE)
    assert left_out
    assert len(written) + sum(map(int, left_out)) == 5_000


def test_one_fault_hides_no_other(log: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(100):
        log.warning("Something else")
        try:
            _ = [0][1] if number % 2 else {}["a key"]  # type: ignore[index]
        except LookupError:
            log.exception("A call failed: %d", number)
        log.info("What is no fault is not bounded")
    assert len([each for each in caplog.records if each.exc_info]) == 2 * A_MINUTE
    assert caplog.messages.count("What is no fault is not bounded") == 100
