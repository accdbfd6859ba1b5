"""Event streams that do not end, and those of a session."""

import json
import threading
import time
from contextlib import closing, suppress
from typing import Any

import pytest

from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.connection import Profile, connect
from tool_chaining_conformance.target.era import Era

from ..kit.serving import Handler, serving
from .small_server import SmallServer


def test_a_stream_that_never_ends_is_left_at_the_deadline() -> None:
    class Endless(Handler):
        def do_POST(self) -> None:
            answer = SmallServer().handle(message := self.message(), {})
            self.begin_stream()
            if message["method"] == "server/discover":
                self.wfile.write(b"data: " + json.dumps(answer).encode() + b"\n\n")
                return
            end = time.monotonic() + 20
            with suppress(OSError):  # The suite gives up.
                while time.monotonic() < end:
                    self.wfile.write(b"data: no line end")
                    self.wfile.flush()
                    time.sleep(0.01)

    late = pytest.raises(TargetFailure, match=r"no reply to tools/list within 0\.5 s")
    with serving(Endless) as origin:
        target = Target(url=f"{origin}/mcp", timeout=0.5)
        with closing(connect(target, Era.MODERN, Profile())) as connection, late:
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
