"""The server over Streamable HTTP: the ASGI application, and how its connections are handled."""

import asyncio
import socket
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from banking_server.server.build import build_server, configure_logging, utc_now
from banking_server.server.scopes import MAX_REQUEST_BYTES, PATH, ToolScopes
from banking_server.server.settings import Settings, load_settings

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


def http_app(settings: Settings, clock: Callable[[], datetime] = utc_now) -> Starlette:
    """Return the ASGI application: stateless Streamable HTTP at `/mcp`.

    Raises `SecretUnavailable`.
    """
    mcp = build_server(settings, customer=None, clock=clock)
    app = mcp.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        # A call runs to its end even if the client goes away, and may safely be repeated.
        json_response=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=_transport_security(settings),
    )
    # Last in the list is next to the routes: the token has been read by then.
    metadata_url = str(build_resource_metadata_url(AnyHttpUrl(settings.resource)))
    app.user_middleware.append(Middleware(ToolScopes, metadata_url=metadata_url))
    return app


def http_app_from_environment() -> Starlette:
    """Return the ASGI application of a worker process, which has its settings from there."""
    settings = load_settings()
    configure_logging(settings.log_level)
    return http_app(settings)


def _transport_security(settings: Settings) -> TransportSecuritySettings:
    """Say which `Host` and `Origin` headers are let in: other names may be a rebinding attack."""
    resource = urlsplit(settings.resource)
    hosts = [resource.netloc, *settings.allowed_hosts]
    origins = [f"{resource.scheme}://{resource.netloc}", *settings.allowed_origins]
    if settings.on_loopback:
        hosts += [f"{name}:*" for name in _LOOPBACK]
        origins += [f"http://{name}:*" for name in _LOOPBACK]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


class PromptHttp(H11Protocol):
    """HTTP without Nagle's algorithm, under which an answer in two packets waits for the client.

    asyncio turns it off, but not on the connections of a socket that several workers share.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
