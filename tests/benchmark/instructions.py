"""User-mode instructions: what a program costs, whatever else the machine does meanwhile.

They leave out the kernel and all waiting, so rates stand beside them.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..kit.command import PATIENCE

MISSING: Final = (
    None
    if shutil.which("valgrind")
    else "Instructions are not counted, because valgrind is not installed."
)


def count(
    words: Sequence[str],
    environment: dict[str, str],
    request: bytes = b"",
    expected: str = "",
    *,
    times: int = 1,
    alone: bool = False,
) -> float:
    """Return the instructions of a command, from its start to its end.

    A server over stdio gets one line, `request`, so many `times`, and its input ends after the last
    answer, which must contain `expected`. `alone` leaves out the processes that the command starts.
    Raises AssertionError for another answer, or if the command fails.
    """
    with TemporaryDirectory(prefix="instructions-") as folder:
        counter = [
            *("valgrind", "--tool=cachegrind", "--cache-sim=no"),
            f"--trace-children={'no' if alone else 'yes'}",
            f"--cachegrind-out-file={folder}/%p",
        ]
        process = subprocess.Popen(
            [*counter, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # The order of sets and dictionaries would change what is counted by a per cent.
            env={**environment, "PYTHONHASHSEED": "0"},
        )
        answer = b""
        for _ in range(times if request else 0):
            os.write(process.stdin.fileno(), request + b"\n")
            answer = process.stdout.readline()
        process.communicate(timeout=10 * PATIENCE)
        assert process.returncode == 0, (words, process.returncode)
        assert expected in answer.decode(), answer
        summaries = [path.read_text().splitlines()[-1] for path in Path(folder).iterdir()]
        return sum(float(line.removeprefix("summary: ")) for line in summaries)
