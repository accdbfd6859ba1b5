"""A client over HTTP that reads and writes plain JSON: it sees whatever comes, known or not.

And what it talks to: the proxy, as a process or in a thread, and the strange server behind it.
"""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from tool_chaining_proxy.client_side.http import HttpServer
from tool_chaining_proxy.client_side.stdio import serve_lines
from tool_chaining_proxy.options import Command, HttpOptions, ProxyOptions

from ..kit.command import PATIENCE, environment
from ..kit.servers import free_port, serving_process
from . import strange_server

PROXY = [sys.executable, "-m", "tool_chaining_proxy"]

OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
CHAINING = "com.example/tool-chaining"

JSON = dict[str, Any]

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

CLIENT = {"name": "wire", "version": "1", "x-client": True}


class Refused(Exception):
    """The answer was an error, of JSON-RPC or of HTTP."""

    def __init__(self, status: int, error: JSON, challenge: str | None = None) -> None:
        super().__init__(status, error)
        self.status, self.error, self.challenge = status, error, challenge


@dataclass
class Wire:
    """One client. Its session, if the revision has one, begins with `open`."""

    url: str
    revision: str
    authorization: str | None = None
    capabilities: JSON = field(default_factory=lambda: dict(CAPABILITIES))
    heard: list[JSON] = field(default_factory=list)
    """What came besides answers, in order: notifications and questions."""
    greeting: JSON = field(default_factory=dict)
    """What the server said about itself."""
    session: str | None = None
    http: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(timeout=PATIENCE))
    last: int = 0
    """The number of the last request."""

    async def open(self) -> None:
        """Learn who the server is."""
        if self.revision == NEW:
            self.greeting = await self.ask("server/discover")
            return
        params = {"protocolVersion": OLD, "capabilities": self.capabilities, "clientInfo": CLIENT}
        self.greeting = await self.ask("initialize", params)
        await self.tell("notifications/initialized")

    async def ask(self, method: str, params: JSON | None = None, **meta: Any) -> JSON:
        """Send one request and return its result. Raises `Refused`."""
        self.last += 1
        number = self.last
        message = {**self._message(method, params, meta), "id": number}
        async with self.http.stream(
            "POST", self.url, headers=self._headers(message), json=message
        ) as response:
            if method == "initialize":
                self.session = response.headers.get("mcp-session-id")
            async for came in _messages(response):
                if came.get("id") == number and "method" not in came:
                    if "error" in came:
                        challenge = response.headers.get("www-authenticate")
                        raise Refused(response.status_code, came["error"], challenge)
                    return dict(came["result"])
                if "method" not in came and response.status_code >= 400:
                    raise Refused(response.status_code, came["error"])
                await self._hear(came)
        raise Refused(response.status_code, {})

    async def call(self, name: str, arguments: JSON | None = None, **meta: Any) -> JSON:
        """Call a tool, and answer whatever is asked on the way."""
        return await self.through(
            "tools/call", {"name": name, "arguments": arguments or {}}, **meta
        )

    async def through(self, method: str, params: JSON, **meta: Any) -> JSON:
        """Send a request, and again with the answers as long as it comes back with questions."""
        more: JSON = {}
        while True:
            result = await self.ask(method, {**params, **more}, **meta)
            if result.get("resultType") != "input_required":
                return result
            more = self.answering(result)

    def answering(self, interim: JSON) -> JSON:
        """Return what the next round of a request says besides the request itself."""
        questions = interim.get("inputRequests", {})
        self.heard += questions.values()
        answers = {key: ANSWERS[one["method"]] for key, one in questions.items()}
        return {"inputResponses": answers, "requestState": interim.get("requestState")}

    async def tell(self, method: str, params: JSON | None = None) -> None:
        """Send a notification."""
        message = self._message(method, params, {})
        response = await self.http.post(self.url, headers=self._headers(message), json=message)
        assert response.status_code == 202, response.text

    @asynccontextmanager
    async def listening(self, *uris: str) -> AsyncIterator[None]:
        """Hear of every change, and of changes of the resources `uris`, inside the block."""
        kinds = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
        wanted = {"notifications": {**kinds, "resourceSubscriptions": list(uris)}}
        async with anyio.create_task_group() as group:
            if self.revision == NEW:
                group.start_soon(self._listen, wanted)
                await self.until(lambda: "notifications/subscriptions/acknowledged" in self.methods)
            else:
                await group.start(self._stream)
                for uri in uris:
                    await self.ask("resources/subscribe", {"uri": uri})
            yield
            group.cancel_scope.cancel()

    async def _listen(self, wanted: JSON) -> None:
        with contextlib.suppress(httpx2.HTTPError, Refused):  # It ends as it may.
            await self.ask("subscriptions/listen", wanted)

    async def _stream(self, *, task_status: Any) -> None:
        headers = {**self._headers({}), "Accept": "text/event-stream"}
        async with self.http.stream("GET", self.url, headers=headers, timeout=None) as response:
            assert response.status_code == 200
            task_status.started()
            with contextlib.suppress(httpx2.HTTPError):
                async for came in _messages(response):
                    await self._hear(came)

    @property
    def methods(self) -> list[str]:
        return [one["method"] for one in self.heard]

    def params(self, method: str) -> list[JSON]:
        """The params of all that came under `method`."""
        return [one.get("params", {}) for one in self.heard if one["method"] == method]

    @staticmethod
    async def until(true: Any) -> None:
        with anyio.fail_after(PATIENCE):
            while not true():
                await anyio.sleep(0.02)

    async def close(self) -> None:
        """End the session as a client does that says so."""
        if self.session:
            await self.http.delete(self.url, headers=self._headers({}))
        await self.http.aclose()

    async def _hear(self, message: JSON) -> None:
        self.heard.append(message)
        if "id" in message:
            answer = ANSWERS[message["method"]]
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
            response = await self.http.post(self.url, headers=self._headers({}), json=reply)
            assert response.status_code == 202, response.text

    def _message(self, method: str, params: JSON | None, meta: JSON) -> JSON:
        if self.revision == NEW:
            own = {"clientCapabilities": self.capabilities, "clientInfo": CLIENT}
            meta = {**{f"{META}{key}": value for key, value in own.items()}, **meta}
            meta[f"{META}protocolVersion"] = NEW
        if meta:
            params = {**(params or {}), "_meta": meta}
        message = {"jsonrpc": "2.0", "method": method}
        return message if params is None else {**message, "params": params}

    def _headers(self, message: JSON) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        if self.session is not None:
            headers |= {"MCP-Session-Id": self.session, "MCP-Protocol-Version": OLD}
        if self.revision == NEW:
            params = message.get("params") or {}
            headers |= {"MCP-Protocol-Version": NEW, "Mcp-Method": message.get("method", "")}
            if name := params.get("name", params.get("uri")):
                headers["Mcp-Name"] = name
        return headers


async def _messages(response: httpx2.Response) -> AsyncIterator[JSON]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        async for line in response.aiter_lines():
            if line.startswith("data:") and line[5:].strip():
                yield json.loads(line[5:])
    elif body := await response.aread():
        try:
            yield json.loads(body)
        except ValueError:
            raise Refused(response.status_code, {"message": body.decode()}) from None


@asynccontextmanager
async def wire(url: str, revision: str, **members: Any) -> AsyncIterator[Wire]:
    """A client with an open session, closed again at the end."""
    client = Wire(url, revision, **members)
    try:
        await client.open()
        yield client
    finally:
        with anyio.CancelScope(shield=True), contextlib.suppress(httpx2.HTTPError):
            await client.close()


@dataclass
class Running:
    """A process of the proxy that serves HTTP."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8")


@contextmanager
def proxy_over_http(folder: Path, *arguments: str, **variables: str) -> Iterator[Running]:
    """Run `tool-chaining-proxy --http` in front of what the arguments say."""
    port = free_port()
    log = folder / f"{port}.log"
    command = [*PROXY, "--http", "--port", str(port), *arguments]
    with serving_process(command, port, log, **variables) as process:
        yield Running(f"http://127.0.0.1:{port}/mcp", process, log)


def strange() -> Command:
    """The strange server as what the proxy starts. It speaks 2025-11-25."""
    return Command((sys.executable, strange_server.__file__), environment())


@asynccontextmanager
async def proxy_in_memory(options: ProxyOptions) -> AsyncIterator[Any]:
    """Serve the proxy to one client, as over stdio; gives the client's ends of the streams."""
    async with anyio.create_task_group() as tasks, create_client_server_memory_streams() as ends:
        client, (read, write) = ends

        async def lines() -> AsyncIterator[bytes]:
            async for received in read:
                assert isinstance(received, SessionMessage)
                text = received.message.model_dump_json(by_alias=True, exclude_unset=True)
                yield text.encode()

        async def send(line: bytes) -> None:
            await write.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

        tasks.start_soon(serve_lines, options, lines(), send)
        yield client
        tasks.cancel_scope.cancel()


@contextmanager
def proxy_in_a_thread(options: ProxyOptions, **chosen: Any) -> Iterator[str]:
    """Serve the proxy over HTTP in a thread of this process; gives its URL."""
    server = HttpServer(options, HttpOptions(**chosen))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
