"""An issuer on loopback that publishes its keys, and keys to sign tokens with."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .serving import served


@dataclass
class Key:
    """A key pair, and what its JWK says of it."""

    kid: str
    algorithm: str
    private: Any
    says: dict[str, str] = field(default_factory=dict)

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
    return Key(kid, "ES256", ec.generate_private_key(ec.SECP256R1()), says)


def rsa_key(kid: str, bits: int = 2048) -> Key:
    return Key(kid, "RS256", rsa.generate_private_key(65537, bits))


def edwards(kid: str, **says: str) -> Key:
    return Key(kid, "EdDSA", ed25519.Ed25519PrivateKey.generate(), says)


@dataclass
class AuthorizationServer:
    """Whose tokens the bank takes."""

    resource: str
    keys: list[Any]
    """Each a `Key`, the first of which signs, or a JWK as it is to be published."""
    origin: str = ""
    answer: Response | None = None
    """The answer in place of the keys, if there is one."""
    fetched: int = 0
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

    async def publish(self, request: Request) -> Response:
        self.fetched += 1
        keys = [key.jwk if isinstance(key, Key) else key for key in self.keys]
        return self.answer or JSONResponse({"keys": keys})


@contextmanager
def authorization_server(
    resource: str, keys: list[Any], port: int = 0
) -> Iterator[AuthorizationServer]:
    """Run an authorization server until the end of the block."""
    made = AuthorizationServer(resource, keys)
    app = Starlette(routes=[Route("/jwks", made.publish)])
    with served(app, path="", port=port) as made.origin:
        yield made
