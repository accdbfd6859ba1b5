"""The check of bearer tokens, and the tokens for a trial."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from mcp.server.auth.provider import AccessToken, TokenVerifier

from banking_server.server.keys import Keys
from banking_server.server.settings import Settings
from tool_chaining.errors import ForPeople

if TYPE_CHECKING:
    from jwt import PyJWK

logger = logging.getLogger(__name__)

ALGORITHM: Final = "HS256"
"""The signature algorithm of the server's own tokens, whatever the header of a token says."""

LOCAL: Final = "urn:banking-server:local"
"""The issuer of a trial token: this installation. Without a configured URL, its audience too.

Only a server with the same secret accepts it, on a loopback address and on any port."""

REMEMBERED_SECONDS: Final = 5
"""Seconds for which an accepted token and its subject are not checked again."""

_MOST_REMEMBERED: Final = 1024

CLIENT_ID: Final = "banking-server"
"""The client id in a token that this server issues."""


class KeysUnavailable(ForPeople):
    """The issuer's keys cannot be fetched, so its tokens cannot be checked."""


def log_refused_token(why: str) -> None:
    """Log why a token is refused. `why` must not repeat any part of the token."""
    logger.warning("Refused a token: %s", why)


def verified_claims(
    token: str,
    keys: "Sequence[bytes | PyJWK]",
    *,
    algorithms: Sequence[str],
    issuer: str,
    audiences: Sequence[str],
    clock_skew: float = 0,
) -> dict[str, Any] | None:
    """Return the claims of a token that one of the keys signed and that is valid now, or None.

    `clock_skew` is how many seconds the issuer's clock may differ.
    """
    import jwt

    reasons: dict[type[Exception], str] = {
        jwt.ExpiredSignatureError: "it has expired",
        jwt.InvalidAudienceError: f"its audience (aud) is not {' or '.join(audiences)}",
        jwt.InvalidIssuerError: f"its issuer (iss) is not {issuer}",
        jwt.ImmatureSignatureError: "it is not valid yet: compare the clocks",
    }
    why = "it is not signed with a known key, or it is malformed"
    for key in keys:
        try:
            return jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=audiences,
                issuer=issuer,
                leeway=clock_skew,
                options={
                    "require": ["iss", "sub", "aud", "exp"],
                    "enforce_minimum_key_length": True,
                },
            )
        except jwt.MissingRequiredClaimError as error:
            why = f"it lacks the claim {error.claim}"
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            # For another key, or a malformed token, the reason stays.
            why = reasons.get(type(error), why)
    log_refused_token(why)
    return None


def access_token(
    token: str, claims: dict[str, Any], *, customer: str, scopes: object, resource: str
) -> AccessToken:
    """Return the SDK's model of a verified token, for `customer` at `resource`.

    `scopes` is a text with spaces between the scopes, or a list. Anything else means no scope.
    """
    listed = scopes.split() if isinstance(scopes, str) else scopes
    granted = listed if isinstance(listed, list) else []
    client_id = claims.get("client_id")
    return AccessToken(
        token=token,
        client_id=client_id if isinstance(client_id, str) else claims["sub"],
        scopes=[name for name in granted if isinstance(name, str)],
        expires_at=int(claims["exp"]),
        resource=resource,
        subject=customer,
        claims={"iss": claims["iss"]},
    )


@dataclass(frozen=True, repr=False)
class Tokens(TokenVerifier):
    """Issues and verifies the trial tokens of one HTTP server: signed JWTs (RFC 7519)."""

    key: bytes
    resource: str
    """The server's URL: the tokens' audience."""
    local: bool = False
    """Whether no URL is configured. Tokens are then issued for `LOCAL`, which is accepted too."""
    other_keys: tuple[bytes, ...] = ()
    """Older keys that a token may be signed with."""

    @classmethod
    def of(cls, settings: Settings, keys: Keys) -> Self:
        """Return the issuer and verifier for the server with these settings."""
        others = tuple(other.tokens for other in keys.others)
        return cls(keys.tokens, settings.resource, settings.resource_url is None, others)

    def mint(
        self, customer: str, scopes: Sequence[str], *, now: datetime, lifetime: timedelta
    ) -> str:
        """Return a token for `customer` with these scopes."""
        claims = {
            "iss": LOCAL,
            "sub": customer,
            "aud": LOCAL if self.local else self.resource,
            "iat": now,
            "exp": now + lifetime,
            "client_id": CLIENT_ID,
            "scope": " ".join(scopes),
        }
        import jwt  # Imported here because a server over stdio has no tokens.

        return jwt.encode(claims, self.key, algorithm=ALGORITHM)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a valid token, or None."""
        claims = verified_claims(
            token,
            [self.key, *self.other_keys],
            algorithms=[ALGORITHM],
            issuer=LOCAL,
            audiences=[self.resource, *([LOCAL] if self.local else [])],
        )
        if claims is None:
            return None
        return access_token(
            token,
            claims,
            customer=claims["sub"],
            scopes=claims.get("scope"),
            resource=self.resource,
        )


class CustomerTokens(TokenVerifier):
    """Accepts valid tokens whose subject is a customer.

    An accepted token is not checked again for `REMEMBERED_SECONDS`; the SDK checks its expiry.
    """

    def __init__(
        self,
        tokens: TokenVerifier,
        is_customer: Callable[[str], Awaitable[bool]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`monotonic` returns seconds."""
        self._tokens = tokens
        self._is_customer = is_customer
        self._monotonic = monotonic
        self._accepted: dict[str, tuple[float, AccessToken]] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a valid token, or None.

        Raises `KeysUnavailable`, or an exception of the bank.
        """
        until, access = self._accepted.get(token, (0.0, None))
        if access is not None and self._monotonic() < until:
            return access
        self._accepted.pop(token, None)
        access = await self._tokens.verify_token(token)
        if access is None or access.subject is None:
            return None
        if not await self._is_customer(access.subject):
            log_refused_token("its subject is not a customer of this bank")
            return None
        if len(self._accepted) >= _MOST_REMEMBERED:
            self._accepted.pop(next(iter(self._accepted)))
        self._accepted[token] = (self._monotonic() + REMEMBERED_SECONDS, access)
        return access
