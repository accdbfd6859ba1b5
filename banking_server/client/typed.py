"""Reads the lines that a person types at a prompt, edited with the platform's readline."""

import importlib
import sys
from contextlib import suppress


def read_line(prompt: str) -> str:
    """Return the next line of standard input. Call it in the main thread.

    Raises EOFError if there are no more lines. Only a person sees the prompt; it never gets
    into the output that a program reads.
    """
    sys.stdout.flush()
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):  # Not every platform has it; `input` then edits less.
            importlib.import_module("readline")
        return input(prompt)
    if sys.stdin.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
    return input()
