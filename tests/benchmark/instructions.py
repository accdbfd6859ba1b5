"""User-mode instructions: what a program costs, whatever else the machine does meanwhile.

They leave out the kernel and all waiting, so rates stand beside them.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..kit.command import PATIENCE

MISSING: Final = (
    "Instructions are not counted: `perf` (Debian: linux-perf) is missing, or this machine has no "
    "counters for it, and `valgrind` is missing too."
)


@dataclass(frozen=True)
class Counter:
    """A program that counts the instructions of another one and of all that it starts."""

    name: str

    def count(
        self,
        words: Sequence[str],
        environment: dict[str, str],
        ask: bytes = b"",
        says: str = "",
        *,
        times: int = 1,
        alone: bool = False,
    ) -> float:
        """Return the instructions of a command, from its start to its end.

        A server over stdio is sent one line, `ask`, so many `times`, and its input ends when it has
        answered with what `says` says. `alone` leaves out what the command starts. Raises
        AssertionError if it answers otherwise, or if the command fails.
        """
        with TemporaryDirectory(prefix="instructions-") as folder:
            process = subprocess.Popen(
                [*self._before(folder, alone=alone), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # The order of sets and dictionaries would change what is counted by a per cent.
                env={**environment, "PYTHONHASHSEED": "0"},
            )
            answer = b""
            for _ in range(times if ask else 0):
                os.write(process.stdin.fileno(), ask + b"\n")
                answer = process.stdout.readline()
            process.communicate(timeout=10 * PATIENCE)
            assert process.returncode == 0, (words, process.returncode)
            assert says in answer.decode(), answer
            return sum(self._counted(each) for each in Path(folder).iterdir())

    def _before(self, folder: str, *, alone: bool) -> list[str]:
        if self.name == "perf":
            kind = ["--no-inherit"] if alone else []
            return [
                "perf",
                "stat",
                "-x,",
                "-e",
                "instructions:u",
                "-o",
                f"{folder}/perf",
                *kind,
                "--",
            ]
        children = "no" if alone else "yes"
        kind = ["--tool=cachegrind", "--cache-sim=no", f"--trace-children={children}"]
        return ["valgrind", *kind, f"--cachegrind-out-file={folder}/%p"]

    def _counted(self, file: Path) -> float:
        lines = file.read_text().splitlines()
        if self.name == "perf":
            return next(float(line.split(",")[0]) for line in lines if "instructions" in line)
        return float(lines[-1].removeprefix("summary: "))


def find_counter() -> Counter | None:
    """Return what counts on this machine: `perf`, or `valgrind`, which takes 30 times as long."""
    perf = Counter("perf")
    try:
        perf.count(["true"], dict(os.environ))
    except (OSError, AssertionError, ValueError, StopIteration):
        return Counter("valgrind") if shutil.which("valgrind") else None
    return perf
