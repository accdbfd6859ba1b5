"""A server of a test's own, in a thread of its own, while a block lasts."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn

from banking_server.server.serving import listen


class Handler(BaseHTTPRequestHandler):
    """Answers requests, and says nothing about it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Offer no stream of a session."""
        self.answer(405)

    def do_DELETE(self) -> None:
        """End a session."""
        self.answer(200)

    def message(self) -> Any:
        """Return the JSON that was sent."""
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] = {"content-type": "application/json"},
    ) -> None:
        """Send a whole response; its length is that of `body` if `headers` do not say another."""
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        """Begin a stream of events, which is over when the connection is closed."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True


@contextmanager
def serving(handler: type[Handler], port: int = 0) -> Iterator[str]:
    """Let `handler` answer until the end of the block; gives the origin."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served(app: Any, *, path: str = "/mcp", port: int = 0) -> Iterator[str]:
    """Serve an ASGI application until the end of the block; gives the URL of `path`."""
    listening = listen("127.0.0.1", port)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=[[listening]])
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()
