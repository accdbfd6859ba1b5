"""The bank's server as a process, reached over HTTP and stdio, and clients for it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from banking_server.server.http import http_app
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.settings import Settings
from banking_server.server.tokens import Tokens
from tool_chaining import CLIENT_EXTENSION

from .command import PATIENCE, command, end_with_the_tests, environment
from .serving import served

MODERN = "2026-07-28"
CLIENT = {"name": "a client", "version": "1"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class BankServer:
    """A server of the bank, in this process or in one of its own."""

    settings: Settings

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}/mcp"

    @property
    def tokens(self) -> Tokens:
        return Tokens(load_keys(self.settings).tokens, self.settings.resource)

    def token(self, customer: str = "CUST001", *scopes: str, age: float = 0) -> str:
        """Return a token that is good for an hour, and was made `age` seconds ago."""
        return self.tokens.mint(
            customer,
            scopes or ("bank:read", "bank:transfer"),
            now=utc_now() - timedelta(seconds=age),
            lifetime=timedelta(hours=1),
        )


@dataclass
class HttpServer(BankServer):
    """A server that runs as a process of its own."""

    port: int
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8")


@contextmanager
def bank_server(database: Path, **variables: str) -> Iterator[BankServer]:
    """Serve the bank over HTTP from a thread of this process until the end of the block."""
    with patch.dict(os.environ, variables):
        settings = Settings(database=database, port=free_port(), resource_url=None)
    with served(http_app(settings), port=settings.port):
        yield BankServer(settings)


@contextmanager
def http_server(
    folder: Path, *arguments: str, grouped: bool = False, **variables: str
) -> Iterator[HttpServer]:
    """Run `serve --http` on a free port until the end of the block."""
    port = free_port()
    chosen = {"BANKING_DATABASE": str(folder / "bank.db"), **variables}
    log = folder / f"server-{port}.log"
    secret = chosen.get("BANKING_SECRET")
    database = chosen["BANKING_DATABASE"]
    settings = Settings(database=database, secret=secret, port=port, resource_url=None)
    serve = command("serve", "--http", "--port", str(port), *arguments)
    with serving_process(serve, port, log, grouped=grouped, **chosen) as process:
        yield HttpServer(settings, port, log, process)


@contextmanager
def serving_process(
    command: Sequence[str],
    port: int,
    log: Path | None = None,
    *,
    grouped: bool = False,
    **variables: str,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that serves MCP over HTTP at a port, until Ctrl-C at the end of the block.

    If it is `grouped`, it and its processes are a group of their own, which can be killed.
    """
    with open(log or os.devnull, "wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(**variables),
            preexec_fn=end_with_the_tests,
            start_new_session=grouped,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}/mcp", process)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


@contextmanager
def served_by(*command: str) -> Iterator[str]:
    """Run a program that serves HTTP on the port that is its last argument; gives the URL."""
    port = free_port()
    with serving_process([*command, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


def wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers; whatever it answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended before it was up"
        try:
            httpx2.post(url, timeout=PATIENCE)
        except httpx2.ConnectError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not come up")


def post(server: HttpServer, token: str | None, message: dict[str, Any] | bytes) -> httpx2.Response:
    """Send one message as a client of 2026-07-28 would, and return the HTTP response."""
    body, sent = request_of(message, token)
    return httpx2.post(server.url, content=body, headers=sent, timeout=PATIENCE)


def request_of(
    message: dict[str, Any] | bytes, token: str | None, *, revision: str = MODERN
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers with which a client sends a message; bytes as they are."""
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
        **({"Authorization": f"Bearer {token}"} if token is not None else {}),
    }
    if isinstance(message, bytes):
        return message, sent
    if revision == MODERN and "method" in message:
        params = message.get("params") or {}
        own = {"protocolVersion": MODERN, "clientInfo": CLIENT, "clientCapabilities": {}}
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}
        message = {**message, "params": {**params, "_meta": {**meta, **params.get("_meta", {})}}}
        sent["Mcp-Method"] = message["method"]
        if name := params.get("name", params.get("uri")):
            sent["Mcp-Name"] = name
    return json.dumps(message).encode(), sent


def tool_call(name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}},
    }


def http_client(
    url: str,
    token: str,
    mode: str,
    answer: ElicitationFnT | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,
) -> Client:
    """Return a client that connects over HTTP when it is entered."""
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE, transport=transport
    )
    return Client(
        streamable_http_client(url, http_client=http),
        mode=mode,
        elicitation_callback=answer,
        **{"extensions": [CLIENT_EXTENSION], **options},
    )


def stdio_client(database: Path, mode: str, answer: ElicitationFnT | None = None) -> Client:
    """Return a client that starts its own server when it is entered."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "banking_server", "--database", str(database), "--customer", "CUST001"],
        env=environment(),
    )
    return Client(server, mode=mode, elicitation_callback=answer, extensions=[CLIENT_EXTENSION])
