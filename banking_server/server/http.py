"""The server over Streamable HTTP: the ASGI application."""

import gc
import logging
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.provider import TokenVerifier
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from banking_server.bank.accounts import is_customer
from banking_server.bank.storage import BankBusy, DatabaseFailed, DatabaseUnavailable
from banking_server.server.access import for_customers, metadata_route
from banking_server.server.build import build_server, configure_logging
from banking_server.server.issuer import IssuedTokens
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import utc_now
from banking_server.server.sdk import SessionManager
from banking_server.server.settings import PATH, Settings, load_settings
from banking_server.server.tokens import CustomerTokens, KeysUnavailable, Tokens
from banking_server.tools.results import incident_message, log_incident

logger = logging.getLogger(__name__)

HEALTH_SECONDS: Final = 2.0
"""A bank that does not answer `/health` in this number of seconds is not available."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_PAGES_ON_LOOPBACK: Final = r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?"


def http_app(
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
) -> Starlette:
    """Return the ASGI application: Streamable HTTP at `/mcp`, and `/health`.

    Requests of 2026-07-28 need no session; those of 2025-11-25 belong to sessions of the SDK.
    Raises `SecretUnavailable` or `SettingsError`.
    """
    server = build_server(settings, customer=None, clock=clock)
    verifier: TokenVerifier
    if settings.jwks_url is None:
        verifier = Tokens.of(settings, load_keys(settings))
    else:
        verifier = IssuedTokens(settings, settings.jwks_url)
    manager = SessionManager(
        server, stateless=not settings.sessions, security_settings=_accepted_names(settings)
    )
    customers = CustomerTokens(verifier, lambda name: is_customer(manager.opened.bank, name))

    async def health(_: Request) -> Response:
        """Say in one word whether the bank can be read, without a token: for a load balancer."""
        status, word = 200, "ok"
        try:
            with anyio.fail_after(HEALTH_SECONDS):
                await is_customer(manager.opened.bank, "health")
        except Exception as error:
            logger.warning("The bank cannot serve (%s)", type(error).__name__)
            status, word = 503, "unavailable"
        return JSONResponse({"status": word}, status, {"Cache-Control": "no-store"})

    # A browser first asks permission, without a token, before a page such as the MCP Inspector's.
    endpoint = CORSMiddleware(
        for_customers(manager, customers, settings),
        allow_origin_regex=_PAGES_ON_LOOPBACK,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )
    # No GET: a question is sent with the call that it belongs to, so there is no stream to open.
    methods = ["POST", "DELETE", "OPTIONS"]
    app = Starlette(
        routes=[
            Route(PATH, endpoint, methods=methods),
            Route(f"{PATH}/", endpoint, methods=methods),
            Route("/health", endpoint=health),
            metadata_route(settings),
        ],
        exception_handlers={
            ClientDisconnect: _gone,
            **dict.fromkeys(
                (BankBusy, KeysUnavailable, DatabaseUnavailable, DatabaseFailed), _unavailable
            ),
        },
        lifespan=lambda _: manager.run(),
    )
    # A redirect would name the scheme and the host of this request, which a proxy may have changed.
    app.router.redirect_slashes = False
    return app


async def _gone(_: Request, problem: Exception) -> Response:
    """Return a response that nobody gets: the client left before its request was complete."""
    return Response(status_code=400)


async def _unavailable(_: Request, problem: Exception) -> Response:
    """Return the response to a request whose token or scope cannot be checked now."""
    words = str(problem)
    if not isinstance(problem, BankBusy | KeysUnavailable):
        words = incident_message(log_incident("the check of a token", problem))
    return PlainTextResponse(words, status_code=503, headers={"Retry-After": "1"})


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
    hosts, origins = [resource.netloc], [f"{resource.scheme}://{resource.netloc}"]
    if settings.on_loopback:
        hosts += [f"{name}:*" for name in _LOOPBACK]
        origins += [f"http://{name}:*" for name in _LOOPBACK]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
