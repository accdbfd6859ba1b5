"""Serves an ASGI application with Granian, over HTTP/1.1.

Granian limits the time and the size of a request's head, and the number of connections. It closes a
connection that is silent, or that does not read its responses. Limits for each client address are
the task of a reverse proxy.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from tool_chaining.errors import ForPeople

try:
    import resource
except ImportError:  # pragma: no cover - Windows
    resource = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

HEAD_SECONDS: Final = 5
"""The most seconds for the head of a request, and between two requests of a connection."""

UNREAD_SECONDS: Final = 30
"""Seconds that a client may leave sent data unread (Linux)."""

ENDING_SECONDS: Final = 5
"""Seconds that an ending server waits for its running requests."""

LAST_BYTES_SECONDS: Final = 0.2
"""Seconds that it then waits until the last responses are sent."""

GIVEN_UP: Final = 3
"""The exit code of a server that could not start, or has crashed."""

_BACKLOG: Final = 1024
_RESTART_SECONDS: Final = 0.5
_RESERVE: Final = 128
"""The file descriptors that a process needs in addition to its connections."""


class CannotListen(ForPeople):
    """The server cannot listen at an address; the message is one line for people."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port. Raises `CannotListen`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Accepted connections inherit it.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * UNREAD_SECONDS)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise CannotListen(f"Cannot serve at {host} port {port}: {problem}.") from error
    listening.setblocking(False)
    return listening


def serve(app: Starlette, listening: socket.socket) -> bool:
    """Serve an application until Ctrl-C or SIGTERM; return whether it could start."""

    async def until_a_signal() -> None:
        to_end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, to_end.set)
            except NotImplementedError:  # pragma: no cover - Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(to_end.set))
        await serve_until(to_end, app, listening)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(until_a_signal())
        except Exception:
            logger.exception("The server could not start, or has crashed")
            return False
    return True


async def serve_until(to_end: asyncio.Event, app: Starlette, listening: socket.socket) -> None:
    """Serve until the event is set; then running requests have `ENDING_SECONDS` to end.

    Raises `RuntimeError` if Granian stops by itself.
    """
    running = _RunningRequests(app)
    server = _Server(running, listening)
    loop = asyncio.get_running_loop()
    async with app.router.lifespan_context(app):
        serving = asyncio.create_task(server.serve())
        signalled = asyncio.create_task(to_end.wait())
        await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
        if not to_end.is_set():
            raise RuntimeError("The HTTP server has stopped.")
        for worker in server.wrks:
            worker.terminate()  # type: ignore[no-untyped-call]  # It accepts no connection now.
        with suppress(TimeoutError):
            await asyncio.wait_for(running.none.wait(), ENDING_SECONDS)
        loop.set_exception_handler(_log_unless_closed)
        server.stop()  # type: ignore[no-untyped-call]
        with suppress(TimeoutError):
            await serving


def _log_unless_closed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop, except Granian's about a connection that was closed."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)


class _RunningRequests:
    """ASGI middleware that counts running requests; `none` is set while there are none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._count = 0
        self.none = asyncio.Event()
        self.none.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._count += 1
        self.none.clear()
        try:
            # A request that is cancelled at the end is not an error for Granian's log.
            with suppress(asyncio.CancelledError):
                await self._app(scope, receive, send)
        finally:
            self._count -= 1
            if not self._count:
                self.none.set()


class _Server(Server):
    """Granian in this process, on a listening socket, which it closes at the end."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            # Granian has a timeout for silent connections with HTTP/1.1 only.
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=1000 * HEAD_SECONDS),
            websockets=False,
            backpressure=_most_connections(),
            log_level=LogLevels.error,
            # Granian's messages go to the same log as all others.
            log_dictconfig={"loggers": {"_granian": {"propagate": True}}},
        )
        # Time to send the last bytes of responses. Idle connections are closed at once.
        self.workers_kill_timeout = LAST_BYTES_SECONDS  # type: ignore[assignment]
        self._listening = listening

    def _init_shared_socket(self) -> None:
        # Granian does the same on systems where processes cannot share a port.
        holder: Any = SocketHolder
        self._shd = holder(self._listening.detach(), False, _BACKLOG)
        self._ssp = None


def serve_in_workers(
    factory: Callable[[], Starlette], listening: socket.socket, workers: int
) -> None:
    """Serve the application of `factory` in several processes, until Ctrl-C or SIGTERM.

    A process that ends is replaced. But if it ended with `GIVEN_UP`, all processes end, and this
    one exits with `GIVEN_UP` too.
    """
    context = multiprocessing.get_context("spawn")
    running: list[BaseProcess] = []
    wanted, gave_up = workers, False

    def end(*_: object) -> None:
        nonlocal wanted
        wanted = 0
        for process in running:
            process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    while wanted or running:
        while len(running) < wanted:
            started = context.Process(target=_work, args=(factory, listening))
            started.start()
            running.append(started)
        wait([process.sentinel for process in running])
        for process in [one for one in running if not one.is_alive()]:
            running.remove(process)
            if process.exitcode == GIVEN_UP and not gave_up:
                gave_up = True
                end()
        if wanted:
            time.sleep(_RESTART_SECONDS)
    if gave_up:
        sys.exit(GIVEN_UP)


def _work(factory: Callable[[], Starlette], listening: socket.socket) -> None:
    """Serve in a worker process; end when the supervisor, which started it, ends for any reason.

    If the supervisor is killed, the pipe between them closes. The worker then ends and closes the
    port, so that a new server can use it.
    """
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        raise RuntimeError("A worker has a supervisor.")

    def end_with_it() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_it, daemon=True).start()
    if not serve(factory(), listening):
        sys.exit(GIVEN_UP)


def _most_connections() -> int:
    """Return how many connections the limit on this process's file descriptors allows."""
    if resource is None:  # pragma: no cover - Windows
        return _BACKLOG
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _BACKLOG if most == resource.RLIM_INFINITY else min(_BACKLOG, max(8, most - _RESERVE))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32" or sys.implementation.name != "cpython":
        return None
    import uvloop

    return uvloop.new_event_loop
