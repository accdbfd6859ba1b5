"""What is logged is bounded: a fault that repeats fills no disk."""

import logging
import sys
import time
from collections.abc import Callable
from typing import Final

A_MINUTE: Final = 10
"""Messages a minute of one place in the code about one fault; after that there is one line."""


def log_to_standard_error(line: str = logging.BASIC_FORMAT) -> None:
    """Write what all loggers say from WARNING on to standard error, each as `line` has it.

    What one repeating fault writes is bounded. If somebody has set logging up already, it stays so.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RepeatedFaults())
    logging.basicConfig(level=logging.WARNING, format=line, handlers=[handler])


class RepeatedFaults(logging.Filter):
    """Lets through so many messages a minute that tell of the same fault.

    The same are those from one line of the code, with the same exception from one other line. What
    they say does not count, as an attacker may choose words of it; so what is remembered here is
    bounded by the code. `monotonic` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}
        """When the minute of each began, and how many came in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message is written. The last one before a pause says so."""
        if record.levelno < logging.WARNING:
            return True
        fault = _fault(record)
        now = self._monotonic()
        began, count = self._seen.get(fault, (now, 0))
        left_out = 0
        if now - began >= 60:
            left_out = max(0, count - A_MINUTE - 1)
            began, count = now, 0
        count += 1
        self._seen[fault] = began, count
        if count == A_MINUTE + 1:
            _say(record, f"{record.getMessage()} (more of the same is left out for a minute)")
            record.exc_info = record.exc_text = record.stack_info = None
        elif left_out:
            _say(record, f"{record.getMessage()} ({left_out} more of the same were left out)")
        return count <= A_MINUTE + 1


def _say(record: logging.LogRecord, message: str) -> None:
    record.msg, record.args = message, None


def _fault(record: logging.LogRecord) -> tuple[object, ...]:
    kind, _, trace = record.exc_info or (None, None, None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_at = () if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return (record.pathname, record.lineno, kind, *raised_at)
