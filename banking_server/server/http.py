"""The server over Streamable HTTP: the ASGI application."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from multiprocessing.process import BaseProcess
from typing import Final
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware

from banking_server.messages.names import LOOPBACK, KnownNames
from banking_server.messages.reading import MAX_BYTES
from banking_server.server.bearer import OneGoodToken, metadata_route
from banking_server.server.bodies import Bodies
from banking_server.server.build import build_server, configure_logging, utc_now
from banking_server.server.health import Health
from banking_server.server.pace import RequestPace
from banking_server.server.replies import UncheckedTokens
from banking_server.server.running import Running
from banking_server.server.scopes import ToolScopes
from banking_server.server.sdk import add_behind_authentication, resource_metadata_url
from banking_server.server.sessions import Sessions
from banking_server.server.settings import PATH, Settings, load_settings

SESSION_IDLE: Final = 1800.0
"""Seconds without a request after which a session ends."""


def http_app(
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
    monotonic: Callable[[], float] = time.monotonic,
    session_idle: float = SESSION_IDLE,
) -> Starlette:
    """Return the ASGI application: Streamable HTTP at `/mcp`, and `/health`.

    It keeps nothing between requests, but for the sessions of clients that can be asked something
    and need one for that (`Sessions`).

    Raises `SecretUnavailable`.
    """
    running = Running()
    hosts, origins = _names_let_in(settings)
    mcp = build_server(settings, customer=None, clock=clock, monotonic=monotonic, running=running)
    app = mcp.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        # A call runs to its end even if the client goes away, and may safely be repeated.
        json_response=True,
        max_request_body_size=MAX_BYTES,
        # `KnownNames` is stricter, and comes before anybody's token is read.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes.append(metadata_route(settings))
    metadata_url = resource_metadata_url(settings.resource)
    add_behind_authentication(app, Middleware(OneGoodToken, metadata_url=metadata_url))
    add_behind_authentication(app, Middleware(RequestPace, running=running))
    add_behind_authentication(
        app, Middleware(ToolScopes, running=running, metadata_url=metadata_url)
    )
    add_behind_authentication(app, Middleware(Bodies))
    add_behind_authentication(
        app,
        Middleware(
            Sessions,
            server=mcp.session_manager.app,
            running=running,
            most=settings.sessions,
            idle_seconds=session_idle,
        ),
    )
    # The last one added stands outermost.
    app.add_middleware(UncheckedTokens)
    # What was not meant for this server is read no further.
    app.add_middleware(KnownNames, hosts=hosts, origins=origins)
    app.add_middleware(Health, running=running, monotonic=monotonic)
    return app


def http_app_from_environment() -> Starlette:
    """Return the ASGI application of a worker process; its settings are in the environment."""
    settings = load_settings()
    configure_logging(settings.log_level)
    app = http_app(settings)
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        threading.Thread(target=_end_after, args=(supervisor,), daemon=True).start()
    _tune_process()
    return app


def _end_after(supervisor: BaseProcess) -> None:
    """End this process, one of several workers, when their supervisor has ended, however it did.

    One that was killed tells nobody, but the pipe between them is closed. A worker gives up the
    port at once, so that a new server can have it.
    """
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _tune_process() -> None:
    """Set the interpreter up for many calls at once.

    A call that waits for its commit keeps a thousand objects alive. They are soon taken for
    long-lived ones, and every few hundred calls the collector would look through all that is loaded
    in search of garbage. So what is loaded now is left out of its sight, and it looks more rarely.

    The event loop and the bank's threads take turns at the interpreter. A thread asks for its turn
    anew after each statement; if it were given one each 5 ms, as is Python's default, both would
    be busier with turns than with calls.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    sys.setswitchinterval(0.02)


def _names_let_in(settings: Settings) -> tuple[list[str], list[str]]:
    """Say which `Host` and `Origin` headers are let in."""
    resource = urlsplit(settings.resource)
    hosts = [resource.netloc, *settings.allowed_hosts]
    origins = [f"{resource.scheme}://{resource.netloc}", *settings.allowed_origins]
    if settings.on_loopback:
        hosts += [f"{name}:*" for name in LOOPBACK]
        origins += [f"http://{name}:*" for name in LOOPBACK]
    return hosts, origins
