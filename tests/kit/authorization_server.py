"""An authorization server on loopback, on the HTTP server of the standard library.

It publishes its metadata and its keys. A public client gets a token for a customer by
authorization code and PKCE, where Authlib is installed (`code_flow.py`).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from .serving import running

NO_TOKENS = None if find_spec("authlib") else "Authlib is not installed: pip install '.[dev]'"
"""Why the server gives no tokens out; None if it does."""

CLIENT_ID = "a-client"
REDIRECT_URI = "http://127.0.0.1:1/back"

Key = RSAKey | ECKey | OKPKey
Answer = tuple[int, Any, Any]
"""A status, a body and headers."""


class AuthorizationServer:
    """Issues tokens for `resource`, signed with the first of its keys; publishes all of them."""

    def __init__(self, origin: str, resource: str, keys: list[Key], algorithm: str) -> None:
        self.origin, self.resource, self.keys, self.algorithm = origin, resource, keys, algorithm
        self.customer = "CUST001"
        self.fetched = 0
        """How often the keys were asked for."""
        self.answer: Callable[[BaseHTTPRequestHandler], None] | None = None
        """What is done instead, when the keys are asked for."""

    @property
    def jwks_url(self) -> str:
        return f"{self.origin}/jwks"

    @cached_property
    def code_flow(self) -> Any:
        from .code_flow import CodeFlow

        return CodeFlow(self)

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        path = urlsplit(handler.path).path
        if path == "/authorize":
            answer = self.code_flow.authorized(handler)
        elif path == "/token":
            answer = self.code_flow.token(handler)
        elif path == "/jwks":
            self.fetched += 1
            if self.answer is not None:
                self.answer(handler)
                return
            answer = 200, self.published(), []
        elif path == "/.well-known/oauth-authorization-server":
            answer = 200, self.metadata(), []
        else:
            answer = 404, "", []
        send(handler, *answer)

    def published(self) -> dict[str, Any]:
        """The JWK Set."""
        return dict(KeySet(self.keys).as_dict(private=False))

    def metadata(self) -> dict[str, Any]:
        """What clients find out how to get a token from (RFC 8414)."""
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "jwks_uri": self.jwks_url,
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: Any,
    headers: Any = (("Content-Type", "application/json"),),
) -> None:
    content = (json.dumps(body) if isinstance(body, dict) else body).encode()
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


@contextmanager
def authorization_server(
    resource: str, keys: list[Key], algorithm: str = "ES256", port: int = 0
) -> Iterator[AuthorizationServer]:
    """Run an authorization server until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.respond(self)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is said."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    with running(server) as origin:
        made = AuthorizationServer(origin, resource, keys, algorithm)
        yield made
