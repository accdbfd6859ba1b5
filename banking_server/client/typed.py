"""The lines that a person types at a prompt, with the editing of the platform's readline."""

import importlib
import sys
from contextlib import suppress


def read_line(prompt: str) -> str:
    """Return the next line of standard input. To be called in the main thread.

    Raises EOFError if there are no more lines. The prompt is shown to a person alone, and never
    in the way of a program that reads the output.
    """
    sys.stdout.flush()
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):  # Not every platform has it; `input` then edits less.
            importlib.import_module("readline")
        return input(prompt)
    if sys.stdin.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
    return input()
