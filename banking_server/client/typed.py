"""Reads the lines that a person types at a prompt, edited with the platform's readline."""

import importlib
import signal
import sys
from contextlib import suppress


def read_line(prompt: str) -> str:
    """Return the next line of standard input. Call it in the main thread.

    It blocks the event loop: only so can Ctrl-C end it, while readline has the terminal. Only a
    person sees the prompt; it never gets into the output that a program reads. Raises EOFError if
    there are no more lines, and KeyboardInterrupt.
    """
    sys.stdout.flush()
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):  # Not every platform has it; `input` then edits less.
            importlib.import_module("readline")
    elif sys.stdin.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
        prompt = ""
    else:
        prompt = ""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(prompt)
    finally:
        signal.signal(signal.SIGINT, before)
