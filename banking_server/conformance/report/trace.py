"""A trace: every message of every run, passing ones too, as JSON lines."""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from banking_server.conformance.message import Json, WireMessage
from banking_server.conformance.report.keeping import cost, shallow
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.target.era import Era


class Trace:
    """The file of a trace, written as the runs come."""

    def __init__(self, path: Path, redaction: Redaction) -> None:
        """Begin the file anew, with the folders above it. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._redaction = redaction
        self._lock = threading.Lock()

    def write(
        self,
        scenario: str,
        step: str,
        era: Era,
        messages: Iterable[WireMessage],
        *,
        server: str | None = None,
    ) -> None:
        """Write the messages of one step or case, a line each.

        `server` tells a second server of a case from the first. Raises OSError.
        """
        with self._lock:
            self._write_all(scenario, step, era, messages, server)

    def _write_all(
        self,
        scenario: str,
        step: str,
        era: Era,
        messages: Iterable[WireMessage],
        server: str | None,
    ) -> None:
        for message in messages:
            line: Json = {"scenario": scenario, "step": step, "spec_version": era}
            if server is not None:
                line["server"] = server
            body = self._redaction.json(shallow(message.body))
            self._file.write(as_json(line | {"from": message.sender, "message": body}) + "\n")

    def close(self) -> None:
        """End the file."""
        self._file.close()


STEP_BYTES: Final = 8 * 1024 * 1024
"""Bytes, as Python counts them about, of the messages of a step that wait to be written."""


class Heard:
    """What is heard of a server, step by step.

    A step is written once it is over: a value that it captures as a secret is then known to be one,
    in the very message that brought it too.
    """

    def __init__(self, trace: Trace | None, scenario: str, era: Era) -> None:
        self._trace = trace
        self._scenario = scenario
        self._era = era
        self._step = ""
        self._waiting: list[WireMessage] = []
        self._left = STEP_BYTES
        self._left_out = 0

    def note(self, step: str, message: WireMessage) -> None:
        """Note a message of a step. Raises OSError if one before it cannot be written."""
        if self._trace is None:
            return
        if step != self._step:
            self.close()
            self._step = step
        self._left -= cost(message.body)
        if self._left > 0:
            self._waiting.append(message)
        else:
            self._left_out += 1

    def close(self) -> None:
        """Write the step that is over. Raises OSError."""
        if self._trace is None or not self._waiting:
            return
        if self._left_out:
            note = {"leftOut": f"{self._left_out} messages that there was no room for"}
            self._waiting.append(WireMessage("server", note))
        self._trace.write(self._scenario, self._step, self._era, self._waiting)
        self._waiting, self._left, self._left_out = [], STEP_BYTES, 0
