"""The channel to a server that the suite starts: lines of JSON on its standard streams."""

import contextlib
import json
import queue
import threading
import time
from typing import Final

from tool_chaining_conformance.errors import CannotStart
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.target.channel import (
    MESSAGE_BYTES,
    Ask,
    Received,
    Record,
    Target,
    TargetFailure,
    no_reply,
    read,
    response_to,
    too_long,
)
from tool_chaining_conformance.target.child_process import ChildProcess, last_errors
from tool_chaining_conformance.text import server_ended, wrote_last

QUEUED_LINES: Final = 1
"""Lines that may wait to be read. A server that writes more has to wait."""


class Stdio:
    """The channel to a server over stdio."""

    def __init__(self, target: Target, record: Record) -> None:
        self._timeout = target.timeout
        self._record = record
        try:
            self._process = ChildProcess(
                target.command, interactive=True, environment=target.environment
            )
        except CannotStart as error:
            raise TargetFailure(str(error)) from error
        self._lines: queue.Queue[bytes | None] = queue.Queue(QUEUED_LINES)
        # Reading needs a thread, since it blocks while the server writes nothing.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.output.readline(MESSAGE_BYTES):
                self._lines.put(line)
        self._lines.put(None)

    def _send(self, message: Json) -> None:
        self._record.note("client", message)
        with contextlib.suppress(OSError):  # It has ended, which the next read reports.
            self._process.input.write(json.dumps(message).encode() + b"\n")
            self._process.input.flush()

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> Received:
        """Send a request, answer the server's requests, and return the response.

        Raises TargetFailure.
        """
        self._send(message)
        deadline = time.monotonic() + self._timeout
        noise = others = 0
        while True:
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise queue.Empty
                line = self._lines.get(timeout=left)
            except queue.Empty:
                ignored = f" ({noise} lines that are not JSON objects)" if noise else ""
                wrote = wrote_last(self._last_error())
                raise TargetFailure(
                    f"{no_reply(message['method'], self._timeout, others)}{ignored}{wrote}"
                ) from None
            if line is None:
                code = self._process.wait(1.0)
                raise TargetFailure(server_ended(self._last_error(), code))
            if len(line) == MESSAGE_BYTES and not line.endswith(b"\n"):
                raise too_long()
            received = read(line)
            if received is None:
                noise += 1
                continue
            body = received.body
            ends = "method" not in body and body.get("id") == message["id"]
            self._record.note("server", body, ends=ends)
            if ends:
                return received
            others += 1
            if "method" in body and "id" in body:
                self._send(response_to(body, answer))

    def _last_error(self) -> str:
        return last_errors(self._process.captured_errors()) or ""

    def new_errors(self) -> str:
        """Return the server's standard error since the last call of this method."""
        return self._process.new_errors()

    def notify(self, message: Json) -> None:
        """Send a notification."""
        self._send(message)

    def adopt(self, version: str) -> None:
        """Do nothing: over stdio messages do not carry the negotiated revision."""

    def close(self) -> None:
        """Stop the server, and everything that it started."""
        with self._process:
            self._process.stop()
            while self._reader.is_alive():
                # It may wait for room in the queue.
                with contextlib.suppress(queue.Empty):
                    self._lines.get(timeout=0.05)
