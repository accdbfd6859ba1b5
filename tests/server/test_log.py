"""The log stops nothing when nobody reads it."""

import re
import subprocess
import sys

import pytest

from ..kit.command import PATIENCE

pytestmark = pytest.mark.quick

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
