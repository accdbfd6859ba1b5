"""Event streams are read as the standard says, however a server writes and sends them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.connection import Connection, Profile, connect
from tool_chaining_conformance.target.era import Era

from ..kit.serving import Handler, serving
from .small_server import SmallServer

Chunks = Callable[[bytes], Iterator[bytes]]
"""Turns a message of JSON into the chunks of a body."""

SAID = "a\u2028b\u2029c\u0085d\u000be\u00e9\U0001f600"
"""Separators that end a line for Python, but neither in JSON nor in an event stream."""


@contextmanager
def connected(server: SmallServer, chunks: Chunks, timeout: float = 5) -> Iterator[Connection]:
    """Serve over HTTP, each answer as an event stream; gives a connection to the server."""

    class Streaming(Handler):
        def do_POST(self) -> None:
            answered = server.handle(self.message(), {})
            self.begin_stream()
            with suppress(OSError):  # The suite gives up.
                for chunk in chunks(json.dumps(answered, ensure_ascii=False).encode()):
                    self.wfile.write(chunk)
                    self.wfile.flush()

    with serving(Streaming) as origin:
        target = Target(url=f"{origin}/mcp", timeout=timeout)
        with closing(connect(target, Era.MODERN, Profile())) as connection:
            yield connection


class SaysSeparators(SmallServer):
    def says(self, text: str) -> Any:
        return super().says(SAID)


def plain(message: bytes) -> Iterator[bytes]:
    yield b"data: " + message + b"\n\n"


def in_pieces(message: bytes) -> Iterator[bytes]:
    """A message over several lines of data, with other lines, byte by byte."""
    pretty = json.dumps(json.loads(message), indent=1, ensure_ascii=False).encode()
    data = b"".join(b"data: " + line + b"\r\n" for line in pretty.split(b"\n"))
    yield from (bytes([each]) for each in b": data: {}\r\nid: 1\r\n" + data + b"\r\n")


def test_a_message_arrives_as_it_was_sent() -> None:
    with connected(SaysSeparators(), in_pieces) as connection:
        call = connection.call_tool("notify_team", {"order": "1"})
    assert call.final.result is not None
    assert call.final.result["content"][0]["text"] == SAID


def test_a_stream_that_never_ends_is_left_at_the_deadline() -> None:
    answered: list[bytes] = []

    def endless(message: bytes) -> Iterator[bytes]:
        answered.append(message)
        if len(answered) == 1:  # The greeting.
            yield from plain(message)
            return
        end = time.monotonic() + 20
        while time.monotonic() < end:
            yield b"data: no line end"
            time.sleep(0.01)

    late = pytest.raises(TargetFailure, match=r"no reply to tools/list within 0\.5 s")
    with connected(SmallServer(), endless, timeout=0.5) as connection, late:
        connection.list_tools()


def test_a_question_on_the_stream_of_the_session_is_answered() -> None:
    """On 2025-11-25 a server may put its questions there, and not on the stream of the call."""
    asked, answers = threading.Event(), []
    listening = threading.Event()

    class Asking(Handler):
        def do_GET(self) -> None:
            self.begin_stream()
            listening.set()
            asked.wait(10)
            question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}
            body = {**question, "params": {"message": "x\u2028y", "requestedSchema": {}}}
            text = json.dumps(body, ensure_ascii=False)
            self.wfile.write(f"data: {text}\r\n\r\n".encode())

        def do_POST(self) -> None:
            message = self.message()
            if message.get("id") == "q":
                answers.append(message["result"])
                answered.set()
            result: dict[str, Any] = {"content": []}
            if message.get("method") == "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {}}
            if message.get("method") == "tools/call":
                listening.wait(10)
                asked.set()
                answered.wait(10)
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
            headers = {"content-type": "application/json", "mcp-session-id": "s"}
            self.answer(200, body.encode(), headers)

    answered = threading.Event()
    with serving(Asking) as origin:
        target = Target(url=f"{origin}/mcp", timeout=15)
        connection = connect(target, Era.LEGACY, Profile(elicitation=True))
        connection.call_tool("pick", {})
        connection.close()
    assert answers == [{"action": "cancel"}]
