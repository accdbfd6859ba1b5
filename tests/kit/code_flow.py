"""How a public client gets a token by authorization code and PKCE: Authlib does it.

Nobody has to log in: the customer is `AuthorizationServer.customer`.
"""

from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2 import AuthorizationServer as Authlib
from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc.jwk import KeySet

from .authorization_server import CLIENT_ID, REDIRECT_URI, Answer, AuthorizationServer


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
    def __init__(self, server: AuthorizationServer) -> None:
        super().__init__(server.origin, server.algorithm)
        self._server = server

    def get_jwks(self) -> KeySet:
        return KeySet(self._server.keys[:1])

    def get_audiences(self, *_: Any) -> str:
        return self._server.resource


class CodeFlow(Authlib):  # type: ignore[misc]
    """What answers at `/authorize` and `/token`."""

    def __init__(self, server: AuthorizationServer) -> None:
        super().__init__()
        self._server = server
        self.codes: dict[str, _Code] = {}
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_token_generator("default", _Tokens(server))

    def query_client(self, client_id: str) -> _Client | None:
        return _Client() if client_id == CLIENT_ID else None

    def save_token(self, token: Any, request: Any) -> None:
        """Nothing asks for it later."""

    def send_signal(self, *_: Any, **__: Any) -> None:
        """Nobody listens."""

    def create_oauth2_request(self, request: Any) -> OAuth2Request:
        return _Request(request, self._server.origin)

    def handle_response(self, status: int, body: Any, headers: Any) -> Answer:
        return status, body, headers

    def authorized(self, handler: BaseHTTPRequestHandler) -> Answer:
        asked = self.create_oauth2_request(handler)
        grant = self.get_authorization_grant(asked)
        grant.validate_consent_request()
        customer = _Customer(self._server.customer)
        answer: Answer = self.create_authorization_response(asked, customer, grant)
        return answer

    def token(self, handler: BaseHTTPRequestHandler) -> Answer:
        answer: Answer = self.create_token_response(handler)
        return answer
