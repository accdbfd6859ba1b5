"""The server over Streamable HTTP: the ASGI application."""

import gc
import re
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from mcp.server.auth.provider import TokenVerifier
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from banking_server.bank.accounts import is_customer
from banking_server.bank.audit import check_serving
from banking_server.server.access import AccessControl, metadata_route
from banking_server.server.build import build_server, configure_logging
from banking_server.server.health import PATH as HEALTH_PATH
from banking_server.server.health import Health
from banking_server.server.issuer import IssuedTokens
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.sdk import SessionManager
from banking_server.server.settings import PATH, Settings, load_settings
from banking_server.server.tokens import CustomerTokens, Tokens
from tool_chaining_proxy.hosting.any_id import AnyId

MAX_BYTES: Final = 2 * 1024 * 1024
"""The largest body of a request, so that a refusal of a one-megabyte argument can name it."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


def http_app(
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
    monotonic: Callable[[], float] = time.monotonic,
) -> Starlette:
    """Return the ASGI application: Streamable HTTP at `/mcp`, and `/health`.

    Requests of 2026-07-28 need no session; those of 2025-11-25 belong to sessions of the SDK.
    Raises `SecretUnavailable` or `SettingsError`.
    """
    server = build_server(settings, customer=None, clock=clock, monotonic=monotonic)
    verifier: TokenVerifier
    if settings.jwks_url is None:
        verifier = Tokens.of(settings, load_keys(settings))
    else:
        verifier = IssuedTokens(settings, settings.jwks_url, monotonic)
    manager = SessionManager(
        server,
        stateless=not settings.sessions,
        max_sessions=settings.sessions or None,
        max_request_body_size=MAX_BYTES,
        security_settings=_accepted_names(settings),
    )

    customers = CustomerTokens(verifier, lambda name: is_customer(manager.opened.bank, name))
    health = Health(lambda: check_serving(manager.opened.bank, clock()), monotonic)
    access = AccessControl(manager, customers, settings)
    endpoint = _for_browsers(access, _accepted_names(settings).allowed_origins)
    app = Starlette(
        routes=[
            Route(PATH, endpoint),
            Route(f"{PATH}/", endpoint),
            Route(HEALTH_PATH, endpoint=health.answer),
            metadata_route(settings),
        ],
        lifespan=lambda _: manager.run(),
    )
    # A redirect would name the scheme and the host of this request, which a proxy may have changed.
    app.router.redirect_slashes = False
    return app


def _for_browsers(app: ASGIApp, origins: list[str]) -> CORSMiddleware:
    """Let pages of these origins call `app`: a browser first asks permission, without a token."""
    ports = [re.escape(origin).replace(r":\*", ":[0-9]+") for origin in origins]
    return CORSMiddleware(
        AnyId(app),
        allow_origin_regex="|".join(ports),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )


def http_app_from_environment() -> Starlette:
    """Return the ASGI application of a server process; its settings are in the environment."""
    settings = load_settings()
    configure_logging(settings.log_level)
    app = http_app(settings)
    _tune_process()
    return app


def _tune_process() -> None:
    """Set up the interpreter for many calls at once.

    A call that waits for its commit keeps a thousand objects alive. The garbage collector soon
    counts them as long-lived, and would then scan all loaded objects every few hundred calls. So
    the objects that are loaded now are excluded, and the collector runs less often.

    The event loop and the bank's threads share the interpreter lock. A thread requests it after
    each statement. With Python's default, a switch after 5 ms, much time would go to switches.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    sys.setswitchinterval(0.02)


def _accepted_names(settings: Settings) -> TransportSecuritySettings:
    """Return the `Host` and `Origin` headers that the SDK accepts, against DNS rebinding."""
    resource = urlsplit(settings.resource)
    hosts = [resource.netloc, *settings.allowed_hosts]
    origins = [f"{resource.scheme}://{resource.netloc}", *settings.allowed_origins]
    if settings.on_loopback:
        hosts += [f"{name}:*" for name in _LOOPBACK]
        origins += [f"http://{name}:*" for name in _LOOPBACK]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
