"""The access tokens of an outside authorization server, checked with the keys that it publishes."""

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
    access_of,
    claims_in,
    refused,
)

logger = logging.getLogger(__name__)

SIGNATURES: Final = {
    "RS256": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "ES256": ("ES256",),
    "ES384": ("ES384",),
    "ES512": ("ES512",),
    "EdDSA": ("EdDSA",),
}
"""What a key is good for, by the signature that PyJWT has for its type and curve.

A shared secret (`oct`, HS256) is none of them: whoever could check a token could make one."""

TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
"""The types of token that are taken, in lower case (RFC 9068, 2.1): no other kind of JWT passes."""

CLOCK_SKEW_SECONDS: Final = 10
"""How far the issuer's clock may be ahead; an expired token is refused all the same."""

FRESH_SECONDS: Final = 300
"""How often the keys are fetched anew, so that one that is withdrawn does not stay for ever."""

REFETCH_SECONDS: Final = 10
"""How long after a fetch that failed, or was made for a name that nobody knows, none is made."""

FETCH_SECONDS: Final = 5
"""How long a fetch may take, from connecting to the last byte."""

MOST_BYTES: Final = 128 * 1024
"""The largest JWK Set that is read."""


class _NoKeys(Exception):
    """What came from the JWKS URL cannot be used; the message says why."""


class PublishedKeys:
    """The keys at a JWKS URL: the last ones that were fetched, however long ago that was.

    A token that names an unknown key has them fetched anew, since keys are rotated; as anybody can
    make up such names, that happens once in `REFETCH_SECONDS` at most.
    """

    def __init__(
        self,
        url: str,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`monotonic` returns seconds, by which it is decided whether to fetch again."""
        self._url = url
        self._monotonic = monotonic
        self._sleep = sleep
        self._keys: list[VerificationKey] | None = None
        self._not_before = monotonic()
        self._fetching = anyio.Lock()

    async def fitting(self, key_id: str | None) -> list[VerificationKey]:
        """Return the keys that a token which names this one may be signed with.

        Raises `KeysUnavailable` if there have never been any.
        """
        if found := self._named(key_id):
            return found
        async with self._fetching:  # Whoever had to wait finds what has been fetched meanwhile.
            if not self._named(key_id) and self._monotonic() >= self._not_before:
                if self._keys is not None:
                    self._wait()
                await self._fetch()
        if self._keys is None:
            raise KeysUnavailable(self._not_before - self._monotonic())
        return self._named(key_id)

    def _named(self, key_id: str | None) -> list[VerificationKey]:
        """Return the keys of this name, or all if the token names none."""
        return [key for key in self._keys or () if key_id is None or key.key_id == key_id]

    async def keep_fresh(self) -> None:
        """Fetch the keys for ever, and sooner if the last time failed. Never raises."""
        async with self._fetching:  # A request may have been faster.
            fetched = self._keys is not None or await self._fetch()
        while True:
            await self._sleep(FRESH_SECONDS if fetched else REFETCH_SECONDS)
            async with self._fetching:
                fetched = await self._fetch()

    def _wait(self) -> None:
        self._not_before = self._monotonic() + REFETCH_SECONDS

    async def _fetch(self) -> bool:
        """Fetch the keys; if that fails, those that are there stay. Say whether it succeeded."""
        try:
            with anyio.fail_after(FETCH_SECONDS):
                self._keys = _keys_in(await self._read())
        except Exception as error:
            self._wait()
            # Other errors may quote what was sent or came, or hold a traceback's worth of text.
            reason = str(error) if isinstance(error, _NoKeys) else type(error).__name__
            still = "there are none yet" if self._keys is None else "the last ones stay in use"
            logger.warning("The keys at %s could not be fetched: %s; %s", self._url, reason, still)
            return False
        return True

    async def _read(self) -> bytes:
        body = b""
        # As it is, uncompressed, so that the limit holds for what is kept in memory.
        headers = {"Accept": "application/jwk-set+json, application/json"}
        headers["Accept-Encoding"] = "identity"
        async with (
            # No redirect is followed: the keys are at the URL that was configured.
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
        raise _NoKeys("no JWK Set") from error
    if not keys:
        raise _NoKeys("no key that could check a signature")
    return keys


def _key(described: dict[str, Any]) -> VerificationKey | None:
    """Return one key of a JWK Set; None if it is for something else, or cannot be used."""
    try:
        named, key_id, use = (described.get(name) for name in ("alg", "kid", "use"))
        # By its type alone: a key that calls itself HS256 is none for that.
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "alg"})
    except Exception:
        # One that is broken, or of a type that PyJWT does not know, must not hide the others.
        return None
    signatures = SIGNATURES.get(key.algorithm_name, ())
    if named is not None:
        signatures = tuple(signature for signature in signatures if signature == named)
    if not signatures or use not in (None, "sig"):
        return None
    return VerificationKey(key_id if isinstance(key_id, str) else None, key.key, signatures)


@dataclass(frozen=True)
class IssuedTokens(TokenVerifier):
    """Verifies the access tokens of one issuer for one resource (RFC 9068, and JWTs like those)."""

    issuer: str
    resource: str
    customer_claim: str
    keys: PublishedKeys

    @classmethod
    def of(cls, settings: Settings, monotonic: Callable[[], float]) -> Self | None:
        """Return the tokens that these settings say are taken; None if they name no issuer."""
        if settings.issuer is None or settings.jwks_url is None:
            return None
        keys = PublishedKeys(settings.jwks_url, monotonic)
        return cls(settings.issuer, settings.resource, settings.customer_claim, keys)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a good token says; None for any other. Raises `KeysUnavailable`."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            # The latter two for texts that are not a JWT in ways that PyJWT did not think of.
            refused("it is no JWT")
            return None
        if str(header.get("typ", "JWT")).lower() not in TYPES:
            refused(f"its type (typ) is none of {', '.join(TYPES)}")
            return None
        claims = claims_in(
            token,
            await self.keys.fitting(header.get("kid")),
            issuers=[self.issuer],
            audiences=[self.resource],
            clock_skew=CLOCK_SKEW_SECONDS,
        )
        if claims is None:
            return None
        # Worth something only with the proof (RFC 7800).
        if "cnf" in claims:
            refused("it is bound to a proof (cnf), which is not asked for here")
            return None
        customer = claims.get(self.customer_claim)
        if not isinstance(customer, str):
            refused(f"its claim {self.customer_claim} is no text, or missing")
            return None
        scopes = claims.get("scope", claims.get("scp"))
        return access_of(token, claims, customer=customer, scopes=scopes, resource=self.resource)
