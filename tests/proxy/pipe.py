"""A client over stdio that reads and writes plain JSON: it sees whatever comes, known or not."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..kit.command import PATIENCE, environment

STRANGE = [sys.executable, str(Path(__file__).with_name("strange_server.py"))]
"""The command of the strange server."""

PROXY = [sys.executable, "-m", "banking_server.proxy"]

OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
CHAINING = "com.example/tool-chaining"

JSON = dict[str, Any]

CLIENT = {"name": "pipe", "version": "1", "x-client": True}
CAPABILITIES: JSON = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {"listChanged": True},
    "experimental": {"x-client": {"deep": 1}},
    "extensions": {"com.strange/weather": {"unit": "C"}},
}
ANSWERS: dict[str, JSON] = {
    "elicitation/create": {"action": "accept", "content": {"colour": "red"}, "x-answer": 1},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Hm."},
        "model": "m",
        "x-answer": 2,
    },
    "roots/list": {"roots": [{"uri": "file:///r", "name": "r", "x-root": 1}]},
}


def soon(true: Callable[[], object]) -> None:
    """Wait until something is so that no message tells of."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


class Refused(Exception):
    """The answer was a JSON-RPC error."""

    def __init__(self, error: JSON) -> None:
        super().__init__(error)
        self.error = error


class Pipe:
    """One client, and the process that it started."""

    def __init__(self, process: subprocess.Popen[str], revision: str, capabilities: JSON) -> None:
        self.process = process
        self.revision = revision
        self.capabilities = capabilities
        self.answers = dict(ANSWERS)
        self.heard: list[JSON] = []
        """What came besides answers, in order: notifications and questions."""
        self.greeting: JSON = {}
        self.notes = Path()
        """Where the strange server behind takes its notes."""
        self._replies: dict[Any, JSON] = {}
        self._came = threading.Condition()
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()

    def open(self) -> None:
        """Learn who the server is."""
        if self.revision == NEW:
            self.greeting = self.ask("server/discover")
            return
        params = {"protocolVersion": OLD, "capabilities": self.capabilities, "clientInfo": CLIENT}
        self.greeting = self.ask("initialize", params)
        self.tell("notifications/initialized")

    def ask(self, method: str, params: JSON | None = None, **meta: Any) -> JSON:
        """Send one request and return its result. Raises `Refused`."""
        return self.reply(self.begin(method, params, **meta))

    def begin(self, method: str, params: JSON | None = None, **meta: Any) -> int:
        """Send one request, and return its id."""
        self._last += 1
        own: JSON = {}
        if self.revision == NEW:
            own = {f"{META}protocolVersion": NEW, f"{META}clientInfo": CLIENT}
            own[f"{META}clientCapabilities"] = self.capabilities
        if own or meta:
            params = {**(params or {}), "_meta": {**own, **meta}}
        self._write({"id": self._last, "method": method, "params": params})
        return self._last

    def reply(self, number: int) -> JSON:
        """Wait for the answer to a request, and return its result. Raises `Refused`."""
        self.until(lambda: number in self._replies or self.process.poll() is not None)
        reply = self._replies.pop(number, {"error": {"message": "the process has ended"}})
        if "error" in reply:
            raise Refused(reply["error"])
        return dict(reply["result"])

    def refusal_of(self, line: str, number: str | None) -> JSON:
        """Send a line that is no message, and return the error that answers `number`."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.until(lambda: number in self._replies)
        return dict(self._replies.pop(number)["error"])

    def tell(self, method: str, params: JSON | None = None) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    def through(self, method: str, params: JSON, **meta: Any) -> JSON:
        """Send a request, and again with the answers as long as it comes back with questions."""
        more: JSON = {}
        while True:
            result = self.ask(method, {**params, **more}, **meta)
            if result.get("resultType") != "input_required":
                return result
            more = self.answering(result)

    def answering(self, interim: JSON) -> JSON:
        """Return what the next round of a request says besides the request itself."""
        questions = interim.get("inputRequests", {})
        self.heard += questions.values()
        answers = {key: self.answers[one["method"]] for key, one in questions.items()}
        return {"inputResponses": answers, "requestState": interim.get("requestState")}

    def call(self, name: str, arguments: JSON | None = None, **meta: Any) -> JSON:
        """Call a tool, and answer whatever is asked on the way."""
        return self.through("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    def until(self, true: Callable[[], object]) -> None:
        with self._came:
            assert self._came.wait_for(true, PATIENCE)

    @property
    def methods(self) -> list[str]:
        return [one["method"] for one in self.heard]

    def params(self, method: str) -> list[JSON]:
        """The params of all that came under `method`."""
        return [one.get("params", {}) for one in self.heard if one["method"] == method]

    def close(self) -> int:
        """End the connection, as a client does that goes away, and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            with self._came:
                if "method" in message:
                    self.heard.append(message)
                else:
                    self._replies[message["id"]] = message
                self._came.notify_all()
            if "method" in message and "id" in message:
                answer = self.answers.get(message["method"])
                problem = {"error": {"code": -32601, "message": "Not by me", "data": {"x": 1}}}
                answered = problem if answer is None else {"result": answer}
                self._write({"id": message["id"], **answered})
        with self._came:
            self.process.wait()
            self._came.notify_all()

    def _write(self, message: JSON) -> None:
        assert self.process.stdin is not None
        sent = {k: v for k, v in message.items() if v is not None}
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **sent}) + "\n")
        self.process.stdin.flush()


def noted(client: Pipe) -> list[str]:
    """What the strange server behind has noted."""
    return client.notes.read_text().splitlines() if client.notes.exists() else []


@contextmanager
def pipe(
    command: list[str], revision: str, capabilities: JSON = CAPABILITIES, **variables: str
) -> Iterator[Pipe]:
    """A client that has started `command`, and knows who it talks to."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(**variables),
    )
    client = Pipe(process, revision, capabilities)
    try:
        client.open()
        yield client
    finally:
        code = client.close()
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stderr.close()
        assert "Traceback" not in errors, errors
        assert code == 0
