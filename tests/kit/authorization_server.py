"""An authorization server on loopback, as small as one can be, and keys to sign tokens with.

A client gets a token for a customer by its own credentials, and finds out how from the server's
metadata. Nobody has to log in: the customer is always CUST001.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from .serving import Handler, serving


@dataclass
class Key:
    """A key pair, and what its JWK says of it."""

    kid: str
    algorithm: str
    make: Callable[[], Any]
    """Makes the private half, when it is first used."""
    says: dict[str, str] = field(default_factory=dict)

    @cached_property
    def private(self) -> Any:
        return self.make()

    @property
    def jwk(self) -> dict[str, Any]:
        """The public half, as it is published."""
        of_kind: Any = jwt.get_algorithm_by_name(self.algorithm)
        described = of_kind.to_jwk(self.private.public_key(), as_dict=True)
        return {**described, "kid": self.kid, **self.says}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """Return the token with these claims; a member of the header that is None is left out."""
        said = {"kid": self.kid, "typ": "at+jwt", **header}
        said = {name: value for name, value in said.items() if value is not None}
        said.setdefault("typ", "")  # PyJWT leaves it out.
        return jwt.encode(claims, self.private, self.algorithm, headers=said)


def elliptic(kid: str, **says: str) -> Key:
    return Key(kid, "ES256", partial(ec.generate_private_key, ec.SECP256R1()), says)


def rsa_key(kid: str, bits: int = 2048) -> Key:
    return Key(kid, "RS256", partial(rsa.generate_private_key, 65537, bits))


def edwards(kid: str, **says: str) -> Key:
    return Key(kid, "EdDSA", ed25519.Ed25519PrivateKey.generate, says)


class AuthorizationServer:
    """What one does that has a single client; `answer`, if there is one, answers for its keys."""

    def __init__(self, origin: str, resource: str, keys: list[Any]) -> None:
        self.origin = origin
        self.resource = resource
        self.keys = keys
        """Each a `Key`, the first of which signs, or a JWK as it is to be published."""
        self.answer: Callable[[Handler], None] | None = None
        self.fetched = 0
        """How often its keys were."""

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good token, changed; None leaves one out."""
        now = int(time.time())
        good = {
            "iss": self.origin,
            "sub": "CUST001",
            "aud": self.resource,
            "iat": now,
            "exp": now + 300,
            "client_id": "a-client",
            "scope": "bank:read bank:transfer",
            **changes,
        }
        return {name: value for name, value in good.items() if value is not None}

    def respond(self, handler: Handler) -> None:
        """Answer one request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        asked = urlsplit(handler.path)
        sent = dict(parse_qsl(asked.query) + parse_qsl(body))
        match asked.path:
            case "/jwks" if self.answer is not None:
                self.fetched += 1
                self.answer(handler)
            case "/jwks":
                self.fetched += 1
                keys = [key.jwk if isinstance(key, Key) else key for key in self.keys]
                send(handler, {"keys": keys})
            case "/.well-known/oauth-authorization-server":
                # What clients find out how to get a token from (RFC 8414).
                metadata = {
                    "issuer": self.origin,
                    "authorization_endpoint": f"{self.origin}/authorize",
                    "token_endpoint": f"{self.origin}/token",
                    "jwks_uri": f"{self.origin}/jwks",
                    "response_types_supported": ["code"],
                }
                send(handler, metadata)
            case "/token":
                token = self.keys[0].sign(self.claims(scope=sent["scope"], aud=sent["resource"]))
                issued = {"access_token": token, "token_type": "Bearer", "scope": sent["scope"]}
                send(handler, {**issued, "expires_in": 300})
            case _:
                handler.answer(404)


def send(handler: Handler, body: dict[str, Any]) -> None:
    handler.answer(200, json.dumps(body).encode())


@contextmanager
def authorization_server(
    resource: str, keys: list[Any], port: int = 0
) -> Iterator[AuthorizationServer]:
    """Run an authorization server until the end of the block."""

    class Answering(Handler):
        def do_GET(self) -> None:
            made.respond(self)

        do_POST = do_GET

    with serving(Answering, port) as origin:
        made = AuthorizationServer(origin, resource, keys)
        yield made
