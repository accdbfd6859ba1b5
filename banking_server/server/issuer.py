"""Checks the access tokens of an external authorization server with its published keys."""

import logging
from typing import Final, cast

import anyio.to_thread
import jwt
from jwt.jwk_set_cache import JWKSetCache
from mcp.server.auth.provider import AccessToken, TokenVerifier

from banking_server.server.settings import Settings
from banking_server.server.tokens import (
    KeysUnavailable,
    access_token,
    log_refused_token,
    verified_claims,
)

logger = logging.getLogger(__name__)

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The accepted algorithms. A key has one: its `alg`, or else PyJWT's for its type and curve.

A shared secret (`oct`, HS256) is not accepted: a server that checks tokens could make them."""

TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
"""The accepted types of a token, in lower case (RFC 9068, 2.1)."""

CLOCK_SKEW_SECONDS: Final = 10
"""Seconds that the issuer's clock may be ahead. An expired token is always refused."""

FRESH_SECONDS: Final = 300
"""Seconds until the keys are fetched again, so that a withdrawn key does not stay in use."""

UNKNOWN_SECONDS: Final = 10
"""Seconds since a fetch until an unknown key id causes another: anybody can make up a key id."""

FETCH_SECONDS: Final = 5
"""Seconds that a fetch may wait for the issuer."""


class IssuedTokens(TokenVerifier):
    """Verifies the access tokens of one issuer for one resource (RFC 9068, and similar JWTs).

    PyJWT fetches and caches the issuer's keys. A token has to name its key (`kid`).
    """

    def __init__(self, settings: Settings, jwks_url: str) -> None:
        self._issuer, self._resource = str(settings.issuer), settings.resource
        self._customer_claim = settings.customer_claim
        self._keys = jwt.PyJWKClient(
            jwks_url,
            lifespan=FRESH_SECONDS,
            cooldown_duration=UNKNOWN_SECONDS,
            timeout=FETCH_SECONDS,
        )
        self._cache = cast(JWKSetCache, self._keys.jwk_set_cache)
        self._one_fetch = anyio.CapacityLimiter(1)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a valid token, or None. Raises `KeysUnavailable`."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            # For some texts that are not a JWT, PyJWT raises ValueError or RecursionError.
            log_refused_token("it is not a JWT")
            return None
        if str(header.get("typ", "JWT")).lower() not in TYPES:
            log_refused_token(f"its type (typ) is not one of {', '.join(TYPES)}")
            return None
        key = await self._key(header["kid"]) if "kid" in header else None
        claims = verified_claims(
            token,
            [] if key is None else [key],
            algorithms=ALGORITHMS,
            issuer=self._issuer,
            audiences=[self._resource],
            clock_skew=CLOCK_SKEW_SECONDS,
        )
        if claims is None:
            return None
        # Such a token is valid only with a proof of possession (RFC 7800).
        if "cnf" in claims:
            log_refused_token("it needs a proof of possession (cnf), which is not supported here")
            return None
        customer = claims.get(self._customer_claim)
        if not isinstance(customer, str):
            log_refused_token(f"its claim {self._customer_claim} is missing or not a text")
            return None
        scopes = claims.get("scope", claims.get("scp"))
        return access_token(
            token, claims, customer=customer, scopes=scopes, resource=self._resource
        )

    async def _key(self, key_id: str) -> jwt.PyJWK | None:
        """Return the key with this id, if the issuer publishes it for signatures.

        Raises `KeysUnavailable` if the issuer has to be asked, and gives no keys.
        """
        cached = self._cache.get()
        # Found here, a key needs no thread, and does not wait for an issuer that hangs.
        for key in [] if cached is None else cached.keys:
            if key.key_id == key_id and key.public_key_use in ("sig", None):
                return key
        try:
            return await anyio.to_thread.run_sync(
                self._keys.get_signing_key, key_id, limiter=self._one_fetch
            )
        except (jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError) as error:
            if type(error) is jwt.PyJWKClientError and self._cache.get() is not None:
                return None  # The issuer has keys, but not this one.
            # The message of an error that is not PyJWT's may quote the response.
            reason = str(error) if isinstance(error, jwt.PyJWTError) else type(error).__name__
            logger.warning("The issuer's keys could not be fetched: %s", reason)
            raise KeysUnavailable(
                "Access tokens cannot be checked at the moment. Please try again later."
            ) from None
