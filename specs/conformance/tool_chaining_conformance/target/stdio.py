"""The channel to a server that the suite starts: lines of JSON on its standard streams."""

import json
import queue
import time

from tool_chaining_conformance.errors import CannotStart
from tool_chaining_conformance.message import Json, WireMessage
from tool_chaining_conformance.target.channel import (
    MESSAGE_BYTES,
    Ask,
    Record,
    Target,
    TargetFailure,
    read,
    response_to,
    silence,
    too_long,
)
from tool_chaining_conformance.target.child_process import ChildProcess, wrote_last


class Stdio:
    """The channel to a server over stdio."""

    def __init__(self, target: Target) -> None:
        self._timeout = target.timeout
        self.record = Record()
        try:
            self._process = ChildProcess(
                target.command, longest_line=MESSAGE_BYTES, environment=target.environment
            )
        except CannotStart as error:
            raise TargetFailure(str(error)) from error

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> WireMessage:
        """Send a request, answer the server's requests, and return the response.

        Raises TargetFailure.
        """
        deadline = time.monotonic() + self._timeout
        self.notify(message)
        noise = 0
        while True:
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise queue.Empty
                line = self._process.next_line(left)
            except queue.Empty:
                ignored = f" ({noise} lines that are not JSON-RPC messages)" if noise else ""
                why = f"{silence(message['method'], self._timeout)}{ignored}{self._wrote_last()}"
                raise TargetFailure(why) from None
            if line is None:
                code = self._process.wait(1.0)
                how = "ended" if code is None else f"ended with exit code {code}"
                raise TargetFailure(f"the server {how} instead of answering{self._wrote_last()}")
            if len(line) == MESSAGE_BYTES and not line.endswith(b"\n"):
                raise too_long()
            received = read(line)
            if received is None or received.body.get("jsonrpc") != "2.0":
                noise += 1
                continue
            body = received.body
            ends = "method" not in body and body.get("id") == message["id"]
            self.record.add(received, ends=ends)
            if ends:
                return received
            if "method" in body and "id" in body:
                self._send(response_to(body, answer), deadline - time.monotonic())

    def _wrote_last(self) -> str:
        """Return the end of a message: the last lines of the server's standard error, if any."""
        return wrote_last(self._process.captured_errors())

    def new_errors(self) -> str:
        """Return the server's standard error since the last call of this method."""
        return self._process.new_errors()

    def notify(self, message: Json) -> None:
        """Send a message. Raises TargetFailure."""
        self._send(message, self._timeout)

    def _send(self, message: Json, seconds: float) -> None:
        self.record.add(WireMessage("client", message))
        try:
            self._process.send(json.dumps(message).encode(), seconds)
        except TimeoutError:
            late = f"the server did not read its input within {self._timeout:g} s"
            raise TargetFailure(f"{late}{self._wrote_last()}") from None
        except OSError:
            pass  # It has ended, which the next read reports.

    def adopt(self, version: str) -> None:
        """Do nothing: over stdio messages do not carry the negotiated revision."""

    def close(self) -> None:
        """Stop the server, and everything that it started."""
        self._process.close()
