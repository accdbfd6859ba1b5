"""An authorization server on loopback: Authlib's, on the HTTP server of the standard library.

A public client gets a token for a customer by authorization code and PKCE, and finds out how from
the server's metadata. Nobody has to log in: the customer is `AuthorizationServer.customer`.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2 import AuthorizationServer as Authlib
from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from .serving import running

CLIENT_ID = "a-client"
REDIRECT_URI = "http://127.0.0.1:1/back"

Key = RSAKey | ECKey | OKPKey


class _Request(OAuth2Request):
    def __init__(self, handler: BaseHTTPRequestHandler, origin: str) -> None:
        super().__init__(handler.command, origin + handler.path, headers=handler.headers)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        self._sent = dict(parse_qsl(body))
        self.payload = BasicOAuth2Payload(
            {**dict(parse_qsl(urlsplit(self.uri).query)), **self._sent}
        )

    @property
    def form(self) -> dict[str, str]:
        return self._sent


class _Client(ClientMixin):
    """The one client that is registered, a public one."""

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == REDIRECT_URI

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class _Customer:
    customer_id: str

    def get_user_id(self) -> str:
        return self.customer_id


@dataclass
class _Code:
    customer: _Customer
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return REDIRECT_URI

    def get_scope(self) -> str:
        return self.scope


class _CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none",)

    def save_authorization_code(self, code: str, request: Any) -> None:
        sent = request.payload.data
        challenge = sent["code_challenge"], sent["code_challenge_method"]
        self.server.codes[code] = _Code(request.user, request.scope, *challenge)

    def query_authorization_code(self, code: str, client: Any) -> _Code | None:
        return self.server.codes.pop(code, None)

    def delete_authorization_code(self, authorization_code: Any) -> None:
        """It is gone already."""

    def authenticate_user(self, authorization_code: _Code) -> _Customer:
        return authorization_code.customer


class _Tokens(JWTBearerTokenGenerator):
    def __init__(self, server: "AuthorizationServer") -> None:
        super().__init__(server.origin, server.algorithm)
        self._server = server

    def get_jwks(self) -> KeySet:
        return KeySet(self._server.keys[:1])

    def get_audiences(self, *_: Any) -> str:
        return self._server.resource


class AuthorizationServer(Authlib):  # type: ignore[misc]
    """Issues tokens for `resource`, signed with the first of its keys; publishes all of them."""

    def __init__(self, origin: str, resource: str, keys: list[Key], algorithm: str) -> None:
        super().__init__()
        self.origin, self.resource, self.keys, self.algorithm = origin, resource, keys, algorithm
        self.customer = "CUST001"
        self.codes: dict[str, _Code] = {}
        self.fetched = 0
        """How often the keys were asked for."""
        self.answer: Callable[[BaseHTTPRequestHandler], None] | None = None
        """What is done instead, when the keys are asked for."""
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_token_generator("default", _Tokens(self))

    @property
    def jwks_url(self) -> str:
        return f"{self.origin}/jwks"

    def query_client(self, client_id: str) -> _Client | None:
        return _Client() if client_id == CLIENT_ID else None

    def save_token(self, token: Any, request: Any) -> None:
        """Nothing asks for it later."""

    def send_signal(self, *_: Any, **__: Any) -> None:
        """Nobody listens."""

    def create_oauth2_request(self, request: Any) -> OAuth2Request:
        return _Request(request, self.origin)

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, Any]:
        return status, body, headers

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        path = urlsplit(handler.path).path
        if path == "/authorize":
            asked = self.create_oauth2_request(handler)
            grant = self.get_consent_grant_of(asked)
            answer = self.create_authorization_response(asked, _Customer(self.customer), grant)
        elif path == "/token":
            answer = self.create_token_response(handler)
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

    def get_consent_grant_of(self, asked: OAuth2Request) -> Any:
        grant = self.get_authorization_grant(asked)
        grant.validate_consent_request()
        return grant

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
