"""Checks the access tokens of an external authorization server with its published keys."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Self

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier

from banking_server.server.settings import Settings
from banking_server.server.tokens import (
    KeysUnavailable,
    VerificationKey,
    access_token,
    log_refused_token,
    verified_claims,
)

logger = logging.getLogger(__name__)

SIGNATURES: Final = {
    "RS256": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "ES256": ("ES256",),
    "ES384": ("ES384",),
    "ES512": ("ES512",),
    "EdDSA": ("EdDSA",),
}
"""The accepted algorithms of a key, by PyJWT's algorithm for its type and curve.

A shared secret (`oct`, HS256) is not accepted: a server that checks tokens could make them."""

TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
"""The accepted types of a token, in lower case (RFC 9068, 2.1)."""

CLOCK_SKEW_SECONDS: Final = 10
"""Seconds that the issuer's clock may be ahead. An expired token is always refused."""

FRESH_SECONDS: Final = 300
"""Seconds until the keys are fetched again, so that a withdrawn key does not stay in use."""

REFETCH_SECONDS: Final = 10
"""The pause after a fetch that failed, or that was made for an unknown key id."""

FETCH_SECONDS: Final = 5
"""Seconds that a fetch may take, from the connection to the last byte."""

MOST_BYTES: Final = 128 * 1024
"""The largest JWK Set that is read, in bytes."""


class _NoKeys(Exception):
    """The response of the JWKS URL cannot be used; the message says why."""


class PublishedKeys:
    """The keys at a JWKS URL, as they were fetched last.

    A token with an unknown key id causes a new fetch, since issuers rotate keys. Anybody can make
    up a key id, so this happens once in `REFETCH_SECONDS` at most.
    """

    def __init__(
        self,
        url: str,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`monotonic` returns seconds, for the pauses between fetches."""
        self._url = url
        self._monotonic = monotonic
        self._sleep = sleep
        self._keys: list[VerificationKey] | None = None
        self._not_before = monotonic()
        self._fetching = anyio.Lock()

    async def for_key_id(self, key_id: str | None) -> list[VerificationKey]:
        """Return the keys for a token with this key id, or all keys if it has none.

        Raises `KeysUnavailable` if no keys have been fetched yet.
        """
        if found := self._named(key_id):
            return found
        async with self._fetching:  # Another request may have fetched them in the meantime.
            if not self._named(key_id) and self._monotonic() >= self._not_before:
                if self._keys is not None:
                    self._wait()
                await self._fetch()
        if self._keys is None:
            raise KeysUnavailable(self._not_before - self._monotonic())
        return self._named(key_id)

    def _named(self, key_id: str | None) -> list[VerificationKey]:
        """Return the keys with this key id, or all keys if the token has none."""
        return [key for key in self._keys or () if key_id is None or key.key_id == key_id]

    async def keep_fresh(self) -> None:
        """Fetch the keys regularly, and sooner after a failure. Never raises, never returns."""
        async with self._fetching:  # A request may have fetched them already.
            fetched = self._keys is not None or await self._fetch()
        while True:
            await self._sleep(FRESH_SECONDS if fetched else REFETCH_SECONDS)
            async with self._fetching:
                fetched = await self._fetch()

    def _wait(self) -> None:
        self._not_before = self._monotonic() + REFETCH_SECONDS

    async def _fetch(self) -> bool:
        """Fetch the keys, or keep the old ones if that fails; return whether it succeeded."""
        try:
            with anyio.fail_after(FETCH_SECONDS):
                self._keys = _keys_in(await self._read())
        except Exception as error:
            self._wait()
            # The message of another error may quote the request or the response, or be very long.
            reason = str(error) if isinstance(error, _NoKeys) else type(error).__name__
            still = "there are no keys yet" if self._keys is None else "the old keys stay in use"
            logger.warning("The keys at %s could not be fetched: %s; %s", self._url, reason, still)
            return False
        return True

    async def _read(self) -> bytes:
        body = b""
        # Without compression, so that the limit is a limit on memory.
        headers = {"Accept": "application/jwk-set+json, application/json"}
        headers["Accept-Encoding"] = "identity"
        async with (
            # No redirect is followed: the keys must be at the configured URL.
            httpx2.AsyncClient(timeout=None, follow_redirects=False) as http,
            http.stream("GET", self._url, headers=headers) as response,
        ):
            if response.status_code != 200:
                raise _NoKeys(f"HTTP {response.status_code}")
            async for part in response.aiter_raw():
                body += part
                if len(body) > MOST_BYTES:
                    raise _NoKeys(f"more than {MOST_BYTES} bytes")
        return body


def _keys_in(document: bytes) -> list[VerificationKey]:
    """Return the keys of a JWK Set that check signatures (RFC 7517). Raises `_NoKeys`."""
    try:
        listed = json.loads(document)["keys"]
        keys = [key for each in listed if (key := _key(each)) is not None]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _NoKeys("the response is not a JWK Set") from error
    if not keys:
        raise _NoKeys("the JWK Set has no key for signatures")
    return keys


def _key(described: dict[str, Any]) -> VerificationKey | None:
    """Return one key of a JWK Set; None if it is not for signatures, or cannot be used."""
    try:
        named, key_id, use = (described.get(name) for name in ("alg", "kid", "use"))
        # Its type decides: a key must not choose HS256 by its `alg`.
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "alg"})
    except Exception:
        # A broken key, or one of an unknown type, must not make the other keys unusable.
        return None
    signatures = SIGNATURES.get(key.algorithm_name, ())
    if named is not None:
        signatures = tuple(signature for signature in signatures if signature == named)
    if not signatures or use not in (None, "sig"):
        return None
    return VerificationKey(key_id if isinstance(key_id, str) else None, key.key, signatures)


@dataclass(frozen=True)
class IssuedTokens(TokenVerifier):
    """Verifies the access tokens of one issuer for one resource (RFC 9068, and similar JWTs)."""

    issuer: str
    resource: str
    customer_claim: str
    keys: PublishedKeys

    @classmethod
    def of(cls, settings: Settings, monotonic: Callable[[], float]) -> Self | None:
        """Return the verifier for these settings; None if they name no issuer."""
        if settings.issuer is None or settings.jwks_url is None:
            return None
        keys = PublishedKeys(settings.jwks_url, monotonic)
        return cls(settings.issuer, settings.resource, settings.customer_claim, keys)

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
        claims = verified_claims(
            token,
            await self.keys.for_key_id(header.get("kid")),
            issuers=[self.issuer],
            audiences=[self.resource],
            clock_skew=CLOCK_SKEW_SECONDS,
        )
        if claims is None:
            return None
        # Such a token is valid only with a proof of possession (RFC 7800).
        if "cnf" in claims:
            log_refused_token("it needs a proof of possession (cnf), which is not supported here")
            return None
        customer = claims.get(self.customer_claim)
        if not isinstance(customer, str):
            log_refused_token(f"its claim {self.customer_claim} is missing or not a text")
            return None
        scopes = claims.get("scope", claims.get("scp"))
        return access_token(token, claims, customer=customer, scopes=scopes, resource=self.resource)
