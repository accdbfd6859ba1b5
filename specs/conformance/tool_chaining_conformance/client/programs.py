"""The program around the client under test: one process for each run, or for all (`--one-process`).

The variables of a run and its end are the same in both cases.
"""

import contextlib
import json
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tool_chaining_conformance.client.evidence import ClientEnd
from tool_chaining_conformance.target.child_process import OUTPUT_BYTES, ChildProcess

SCENARIO: Final = "MCP_CONFORMANCE_SCENARIO"
PROTOCOL_VERSION: Final = "MCP_CONFORMANCE_PROTOCOL_VERSION"
CONTEXT: Final = "MCP_CONFORMANCE_CONTEXT"
"""The environment variables of a run, with the names of the official suite."""

RUNS: Final = "MCP_CONFORMANCE_RUNS"
"""The value `stdin` tells a client to read runs from standard input, one per line."""

FURTHER: Final = "a run more than once: it printed another JSON object after its answer"


RunClient = Callable[[str, Mapping[str, str], float], ClientEnd]
"""Runs the client under test once: with the URL of the mock server, environment variables, and the
seconds that it may take. Raises CannotStart."""


def command_runner(command: Sequence[str]) -> RunClient:
    """Return a function that runs a command, with the URL as its last argument."""

    def run(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        process = ChildProcess([*command, url], environment=environment)
        with contextlib.closing(process):
            exit_code = process.wait(timeout)
            process.stop()
            output, errors = process.captured_output(), process.captured_errors()
            return ClientEnd(exit_code, output, errors)

    return run


class OneProcess:
    """Makes several runs of a client in one process, which reads one run from each line.

    If the process crashes or hangs, only its run fails. A new process is started for the next run.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: ChildProcess | None = None

    def __call__(self, url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        """Make the run in the idle process, or in a new one. Raises CannotStart."""
        inputs = {
            "scenario": environment[SCENARIO],
            "protocolVersion": environment[PROTOCOL_VERSION],
            "context": json.loads(environment[CONTEXT]),
            "url": url,
        }
        end = _run(self._idle(), json.dumps(inputs).encode(), timeout)
        if end.exit_code != 0:
            self.close()
        return end

    def _idle(self) -> ChildProcess:
        if self._process is not None and self._process.wait(0) is not None:
            self.close()  # It ended by itself after its last run.
        if self._process is None:
            self._process = ChildProcess(
                self._command, longest_line=OUTPUT_BYTES, environment={RUNS: "stdin"}
            )
        return self._process

    def close(self) -> None:
        """Stop the process, by ending its input."""
        if self._process is not None:
            self._process.close()
            self._process = None


def _run(process: ChildProcess, inputs: bytes, timeout: float) -> ClientEnd:
    """Send a run to a process, and read its answer: a line."""
    process.new_errors()  # Drop those of earlier runs.
    deadline = time.monotonic() + timeout
    if _answered_again(process):
        return ClientEnd(1, "", "", how=f"answered {FURTHER}")
    try:
        process.send(inputs, timeout)
    except TimeoutError:
        return ClientEnd(None, "", process.new_errors())
    except OSError:
        return _gone(process, "")
    noise = ""
    while True:
        try:
            line = process.next_line(deadline - time.monotonic())
        except queue.Empty:
            return ClientEnd(None, noise, process.new_errors())
        if line is None:
            return _gone(process, noise)
        text = line.decode("utf-8", "replace")
        noise = (noise + text)[-OUTPUT_BYTES:]
        if _is_object(text):
            return ClientEnd(0, noise, process.new_errors())


def _gone(process: ChildProcess, noise: str) -> ClientEnd:
    """Return how a process ended during a run, which is never a success."""
    code, how = process.wait(1.0), ""
    if not code:
        how = f"{'closed its output' if code is None else 'exited'} before it answered"
    return ClientEnd(code or 1, noise, process.new_errors(), how=how)


def _answered_again(process: ChildProcess) -> bool:
    """Return whether a process printed another answer after that of its last run."""
    with contextlib.suppress(queue.Empty):
        while (line := process.next_line(0)) is not None:
            if _is_object(line.decode("utf-8", "replace")):
                return True
    return False


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
