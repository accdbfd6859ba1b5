"""A fault that repeats does not fill the disk with what is logged about it."""

import logging
from collections.abc import Iterator

import pytest

from banking_server.server.log import A_MINUTE, RepeatedFaults

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
