"""A program that speaks MCP over stdio, and a client that writes whatever lines it likes."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .command import PATIENCE, end_with_the_tests, environment


class Lines:
    """A program, and the lines that a client writes and reads."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout

    def send(self, line: Any) -> None:
        if isinstance(line, dict):
            line = json.dumps({"jsonrpc": "2.0", **line})
        self.stdin.write((line.encode() if isinstance(line, str) else line) + b"\n")
        self.stdin.flush()

    def said(self) -> dict[str, Any]:
        message = json.loads(self.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def answer(self) -> tuple[Any, int]:
        """Return the id and the code of an answer; 0 is that of a result."""
        said = self.said()
        return said["id"], said.get("error", {"code": 0})["code"]

    def open(self, capabilities: dict[str, Any] | None = None) -> None:
        """Begin as a client of 2025-11-25; by default, as one that can be asked something."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}} if capabilities is None else capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        self.send({"id": 1, "method": "initialize", "params": params})
        assert self.answer() == (1, 0)
        self.send({"method": "notifications/initialized"})

    def call(self, request_id: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        self.send({"id": request_id, "method": "tools/call", "params": params})
        return self.said()

    def end(self) -> tuple[list[dict[str, Any]], str]:
        """End the input; return what else is said, and the log."""
        rest, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0
        return [json.loads(line) for line in rest.splitlines()], errors.decode()


@contextmanager
def lines_of(command: Sequence[str], **variables: str) -> Iterator[Lines]:
    """Run a program until the end of the block."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
        preexec_fn=end_with_the_tests,
    )
    try:
        yield Lines(process)
    finally:
        process.kill()
        process.communicate()
