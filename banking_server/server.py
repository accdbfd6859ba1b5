"""The MCP server: built once, served over stdio or Streamable HTTP."""

import asyncio
import json
import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from mcp.server import MCPServer
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from banking_server import __version__
from banking_server.bank.accounts import list_customers
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import settle
from banking_server.chaining import ToolChaining
from banking_server.packaged import demo_data
from banking_server.settings import Settings, SettingsError, load_settings
from banking_server.tokens import CustomerTokens, Keys, Tokens, load_keys
from banking_server.tools import (
    READ_SCOPE,
    TOOLS,
    TRANSFER_SCOPE,
    App,
    BankServer,
    Infer,
    add_resources,
    required_scope,
)

logger = logging.getLogger(__name__)

NAME: Final = "banking-server"

PATH: Final = "/mcp"
"""Where the HTTP server has its endpoint."""

MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""The largest HTTP request body: room for an argument of a megabyte to be refused by name."""

SETTLE_EVERY_SECONDS: Final = 60

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_INSTRUCTIONS = """\
A personal bank. Start with list_accounts for the ids that the other tools take. A transfer has two
steps: prepare_money_transfer reserves the money, and confirm_or_cancel_money_transfer posts it once
the customer agrees. Never make up a confirmation code: only the customer has it.
A result whose _meta.nextTool names a tool says what has to happen next: call that tool with exactly
those arguments, unless your client already did, in which case its result is there too."""


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def configure_logging(level: str) -> None:
    """Send what the server says about itself to standard error.

    Libraries speak up from WARNING on whatever the level is: below it, some log what they handle.
    """
    logging.basicConfig(
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("banking_server").setLevel(level)


async def open_bank(settings: Settings, now: datetime, keys: Keys | None = None) -> Bank:
    """Open the bank of these settings. Raises `DatabaseUnavailable`.

    Without the keys it is good for everything but giving and checking confirmation codes.
    """
    return await Bank.open(
        settings.database,
        rules=settings.rules(),
        code_key=secrets.token_bytes(32) if keys is None else keys.confirmation_codes,
        demo_data=demo_data(),
        now=now,
    )


async def first_look(settings: Settings) -> list[str]:
    """Open the bank and close it again, so that mistakes come before serving; return the customers.

    Raises `DatabaseUnavailable`, `SecretUnavailable` or `SettingsError`.
    """
    bank = await open_bank(settings, utc_now())
    try:
        load_keys(settings)
        _model(to_its_owner=False)
        return await list_customers(bank)
    finally:
        await bank.close()


def build_server(
    settings: Settings, *, customer: str | None, clock: Callable[[], datetime] = utc_now
) -> MCPServer[App]:
    """Return the server for the one `customer` of a stdio connection, or for HTTP (None).

    Over HTTP a verified token says who is calling, and due transfers are settled while it runs.
    Raises `SecretUnavailable` or `SettingsError`; the bank is opened when the server starts.
    """
    keys = load_keys(settings)
    verifier = CustomerTokens(Tokens.of(settings, keys)) if customer is None else None
    model = _model(to_its_owner=customer is not None)

    @asynccontextmanager
    async def lifespan(_: MCPServer[App]) -> AsyncIterator[App]:
        async with AsyncExitStack() as open_until_the_end:
            bank = await open_bank(settings, clock(), keys)
            open_until_the_end.push_async_callback(bank.close)
            infer = None if model is None else await open_until_the_end.enter_async_context(model())
            app = App(bank=bank, clock=clock, customer=customer, infer=infer)
            if verifier is None:
                yield app
                return

            async def is_customer(subject: str) -> bool:
                return subject in await list_customers(bank)

            verifier.is_customer = is_customer
            async with anyio.create_task_group() as background:
                background.start_soon(_settle_for_ever, bank, clock)
                yield app
                background.cancel_scope.cancel()

    chaining = ToolChaining()
    mcp = BankServer(
        NAME,
        title="Personal banking",
        instructions=_INSTRUCTIONS,
        version=__version__,
        tools=list(TOOLS),
        extensions=[chaining],
        lifespan=lifespan,
        token_verifier=verifier,
        auth=None if verifier is None else _auth(settings, keys),
        # Every process has the same key: a question that one asked, another may hear answered.
        request_state_security=RequestStateSecurity(keys=[keys.request_state]),
    )
    add_resources(mcp)
    chaining.bind(mcp)
    return mcp


def _model(*, to_its_owner: bool) -> Callable[[], AbstractAsyncContextManager[Infer]] | None:
    """Return what connects the language model that the environment names, if it names one.

    Raises `SettingsError`.
    """
    if not any(os.environ.get(f"BANKING_MODEL_{name}") for name in ("URL", "NAME")):
        return None
    # The model's client is slow to import, and few servers have a model.
    from banking_server.agent import ModelNotConfigured, load_model_settings
    from banking_server.model import answering

    try:
        chosen = load_model_settings()
    except ModelNotConfigured as error:
        raise SettingsError(str(error)) from None
    return lambda: answering(chosen, to_its_owner=to_its_owner)


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


def _auth(settings: Settings, keys: Keys) -> AuthSettings:
    # From texts, as pydantic would add a slash to the issuer, which has to be the tokens' own.
    return AuthSettings.model_validate(
        {
            "issuer_url": Tokens.of(settings, keys).issuer,
            "resource_server_url": settings.resource,
            "required_scopes": [READ_SCOPE],
            "validate_token_resource": True,
        }
    )


def _transport_security(settings: Settings) -> TransportSecuritySettings:
    """Say which `Host` and `Origin` headers are let in: other names may be a rebinding attack."""
    resource = urlsplit(settings.resource)
    hosts = [resource.netloc, *settings.allowed_hosts]
    origins = [f"{resource.scheme}://{resource.netloc}", *settings.allowed_origins]
    if settings.on_loopback:
        hosts += [f"{name}:*" for name in _LOOPBACK]
        origins += [f"http://{name}:*" for name in _LOOPBACK]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def _settle_for_ever(bank: Bank, clock: Callable[[], datetime]) -> None:
    """Settle due transfers once a minute. Several processes may: each transfer posts once."""
    while True:
        try:
            now = clock()
            settled = await settle(bank, as_of=now.date(), now=now)
        except Exception:
            logger.exception("Due transfers could not be settled; trying again in a minute")
        else:
            if settled:
                logger.info("Settled %d due transfers", len(settled))
        await anyio.sleep(SETTLE_EVERY_SECONDS)


class PromptHttp(H11Protocol):
    """HTTP without Nagle's algorithm, under which an answer in two packets waits for the client.

    asyncio turns it off, but not on the connections of a socket that several workers share.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


class ToolScopes:
    """Answers 403 to a `tools/call` whose tool needs a scope that the token lacks (RFC 6750).

    ASGI middleware. A request without a good token passes: the route refuses it. So does what is
    not for `/mcp`.
    """

    def __init__(self, app: ASGIApp, metadata_url: str) -> None:
        self._app = app
        self._metadata_url = metadata_url
        self._bounded = RequestBodyLimitMiddleware(self._check, MAX_REQUEST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if (
            scope["type"] != "http"
            or scope["path"] != PATH
            or not isinstance(scope.get("user"), AuthenticatedUser)
        ):
            await self._app(scope, receive, send)
        elif scope["method"] == "POST":
            await self._bounded(scope, receive, send)
        else:
            # Without sessions there is no stream to open with GET, and none to end with DELETE.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        try:
            body = json.loads(first.get("body", b""))
        except (ValueError, RecursionError):
            # Whatever cannot be read here must not be read any differently further in.
            error = {"code": PARSE_ERROR, "message": "The request body is not JSON"}
            await _reply(400, None, error)(scope, receive, send)
            return
        missing = self._missing_scope(body, scope["user"].scopes)
        if missing is not None:
            await self._refuse(missing, body.get("id"))(scope, receive, send)
            return
        delivered = False

        async def again() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return first

        await self._app(scope, again, send)

    @staticmethod
    def _missing_scope(body: Any, granted: list[str]) -> str | None:
        """Return the scope that the call lacks. Only a single message can be a call at all."""
        if not isinstance(body, dict) or body.get("method") != "tools/call":
            return None
        params = body.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        if not isinstance(tool, str):
            return None
        needed = required_scope(tool)
        return None if needed in granted else needed

    def _refuse(self, needed: str, request_id: Any) -> JSONResponse:
        words = f"Required scope: {needed}"
        response = _reply(403, request_id, {"code": INVALID_REQUEST, "message": words})
        response.headers["WWW-Authenticate"] = (
            f'Bearer error="insufficient_scope", error_description="{words}", '
            f'scope="{READ_SCOPE} {TRANSFER_SCOPE}", resource_metadata="{self._metadata_url}"'
        )
        return response


def _reply(status: int, request_id: Any, error: dict[str, Any]) -> JSONResponse:
    body = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return JSONResponse(body, status_code=status)
