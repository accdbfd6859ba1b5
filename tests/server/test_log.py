"""A fault that repeats does not fill the disk with what is logged about it."""

import io
import logging
from collections.abc import Iterator

import pytest

from banking_server.log import A_MINUTE, RepeatedFaults

pytestmark = pytest.mark.quick


class Log:
    """A log in memory, and its clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.logger = logging.getLogger("tests.log")
        self._written = io.StringIO()
        self.handler = logging.StreamHandler(self._written)
        self.handler.addFilter(RepeatedFaults(lambda: self.seconds))

    def lines(self) -> list[str]:
        """Return what was written since the last time."""
        written = self._written.getvalue().splitlines()
        self._written.seek(0)
        self._written.truncate()
        return written

    def complain(self, times: int) -> list[str]:
        for number in range(times):
            self.logger.warning(f"Host {number} is unknown")
        return self.lines()


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    made.logger.addHandler(made.handler)
    made.logger.setLevel(logging.INFO)
    made.logger.propagate = False
    yield made
    made.logger.removeHandler(made.handler)
    made.logger.propagate = True


def test_one_fault_has_so_many_messages_a_minute(log: Log) -> None:
    lines = log.complain(1000)
    assert lines[:A_MINUTE] == [f"Host {number} is unknown" for number in range(A_MINUTE)]
    assert lines[A_MINUTE:] == [
        f"Host {A_MINUTE} is unknown (more of the same is left out for a minute)"
    ]
    log.seconds = 59.0
    assert log.complain(1) == []
    log.seconds = 60.0
    left_out = 1001 - A_MINUTE - 1
    assert log.complain(2) == [
        f"Host 0 is unknown ({left_out} more of the same were left out)",
        "Host 1 is unknown",
    ]
    log.seconds = 120.0
    assert log.complain(1) == ["Host 0 is unknown"]


def test_one_fault_hides_no_other(log: Log) -> None:
    log.complain(100)
    for number in range(100):
        try:
            _ = [0][1] if number % 2 else {}["a key"]  # type: ignore[index]
        except LookupError:
            log.logger.exception("A call failed: %d", number)
    lines = log.lines()
    assert lines.count("Traceback (most recent call last):") == 2 * A_MINUTE
    assert len([line for line in lines if "left out for a minute" in line]) == 2
    for _ in range(100):
        log.logger.info("What is no fault is not bounded")
    assert len(log.lines()) == 100
