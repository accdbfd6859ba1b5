"""How the HTTP server starts and ends, and its log, which stops nothing when nobody reads it."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from ..kit.command import PATIENCE
from ..kit.servers import http_server


def test_sigterm_ends_it(tmp_path: Path) -> None:
    with http_server(tmp_path) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.logged()


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
    left_out = re.findall(r"^\[([0-9]+) lines were dropped", log, re.MULTILINE)
    assert left_out
    assert len(written) + sum(map(int, left_out)) == 5_000
