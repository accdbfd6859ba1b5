"""The lines that a person types at a prompt, and those of earlier conversations.

Editing and the arrow keys are those of the platform's readline, where it has one. What was typed is
kept in a file that its owner alone can read, and no more of it than is of use: people write names
and amounts.
"""

import importlib
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

MAX_KEPT: Final = 500
"""Lines that are kept, the newest."""

MAX_LINE: Final = 1_000
"""Characters of a line that is kept; a longer one is a document, and is not."""


class TypedLines:
    """Reads lines from standard input, and keeps what is typed at a terminal.

    Args:
        file: Where lines are kept; None means nowhere.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._readline = _readline() if self.edited else None
        if self._readline is not None:
            with suppress(OSError):  # A conversation can do without.
                for line in self._kept():
                    self._readline.add_history(line)

    @property
    def edited(self) -> bool:
        """Whether a person types, and sees what they type."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def read(self, prompt: str) -> str:
        """Return the next line. To be called in the main thread.

        Raises EOFError if there are no more lines. The prompt is shown to a person alone, and never
        in the way of a program that reads the output.
        """
        sys.stdout.flush()
        if not self.edited:
            if sys.stdin.isatty():
                print(prompt, end="", file=sys.stderr, flush=True)
            return input()
        line = input(prompt)
        with suppress(OSError):
            self._keep(" ".join(line.split()))
        return line

    def _kept(self) -> list[str]:
        if self._file is None or not self._file.is_file():
            return []
        text = self._file.read_text(encoding="utf-8", errors="replace")
        return text.split("\n")[:-1][-MAX_KEPT:]

    def _keep(self, line: str) -> None:
        if self._file is None or not line or len(line) > MAX_LINE:
            return
        file = self._file.resolve()
        kept = self._kept()
        if kept[-1:] == [line] or (file.exists() and not file.is_file()):
            return  # Whoever links it to a device has switched it off.
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A new file in its place: it is never half written, and its owner's alone whatever it was.
        new = file.with_name(f"{file.name}.{os.getpid()}")
        with open(new, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as writing:
            writing.writelines(f"{one}\n" for one in [*kept, line][-MAX_KEPT:])
        os.replace(new, file)


def _readline() -> Any:
    """Return the platform's readline, which gives `input` its editing; None if it has none."""
    with suppress(ImportError):
        return importlib.import_module("readline")
    return None
