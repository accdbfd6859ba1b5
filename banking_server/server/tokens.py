"""The server's secret, the keys made of it, and bearer tokens: its own, for a trial, and any."""

import hashlib
import hmac
import logging
import os
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from mcp.server.auth.provider import AccessToken, TokenVerifier

from banking_server.bank.new_file import draft_of, publish
from banking_server.server.settings import MIN_SECRET_LENGTH, Settings, secrets_in

logger = logging.getLogger(__name__)

ALGORITHM: Final = "HS256"
"""The signature of the server's own tokens; what a token says about its own is not asked."""

LOCAL: Final = "urn:banking-server:local"
"""Issuer of a token for a trial: this installation. Where no URL is configured, its audience too.

Only a server with the same secret takes it, on a loopback address and on any port."""

REMEMBERED_SECONDS: Final = 5
"""How long a token, and its subject, are not checked again; a customer who left is one so long."""

_MOST_REMEMBERED: Final = 1024

CLIENT_ID: Final = "banking-server"
"""The client that a token minted here was issued to."""


class SecretUnavailable(Exception):
    """There is no secret that may be used; the message is one line and says what to do."""


@dataclass(frozen=True, repr=False)
class Keys:
    """One key for each use of the secret, so that nothing made for one passes in another."""

    tokens: bytes
    confirmation_codes: bytes
    request_state: bytes
    others: tuple[Self, ...] = ()
    """The keys of other secrets, while the secret is being changed: what they made is taken."""

    @classmethod
    def derive(cls, secret: bytes, *others: bytes) -> Self:
        """Return the keys of a secret; the same secret always gives the same."""

        def key(purpose: str) -> bytes:
            return hmac.digest(secret, f"banking-server/1/{purpose}".encode(), hashlib.sha256)

        return cls(
            key("tokens"),
            key("confirmation codes"),
            key("request state"),
            tuple(cls.derive(other) for other in others),
        )


def load_keys(settings: Settings, *, may_make: bool = True) -> Keys:
    """Return the keys of `BANKING_SECRET`, or of the secret file, which is made if need be.

    Unless `may_make`, the file has to be there. Raises `SecretUnavailable`.
    """
    if settings.secret is not None:
        return Keys.derive(*secrets_in(settings.secret.get_secret_value().encode()))
    path = settings.secret_path
    if path is None:
        raise SecretUnavailable(
            "A PostgreSQL database has no secret file beside it: BANKING_SECRET or "
            "BANKING_SECRET_FILE must give the secret that all its servers share."
        )
    try:
        # A new one for a database that others serve would make its tokens and codes worthless.
        if may_make and isinstance(settings.database, Path) and not path.exists():
            _make_secret_file(path)
        return Keys.derive(*_read_secret_file(path))
    except OSError as error:
        problem = error.strerror or "the path is not usable"
        raise SecretUnavailable(f"The secret file {path} cannot be used: {problem}.") from error


def _make_secret_file(path: Path) -> None:
    """Make the file with a new secret, unless another process has been faster.

    It appears under its name complete and already closed to others, or not at all.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with draft_of(path) as draft, suppress(FileExistsError):
        draft.write_text(f"{secrets.token_hex(32)}\n", encoding="ascii")
        publish(draft, path)


def _read_secret_file(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise SecretUnavailable(
                f"Other users can read the secret file {path}: run chmod 600 on it. If somebody "
                "may have read it, delete it, and the next start makes a new one."
            )
        found = secrets_in(file.read(4096))
    if not found:
        raise SecretUnavailable(
            f"Each line of the secret file {path} must be a secret of at least "
            f"{MIN_SECRET_LENGTH} characters. Delete the file, and the next start makes a new one."
        )
    return found


@dataclass(frozen=True, repr=False)
class VerificationKey:
    """A key that tokens are checked with, and the only signatures that it is good for."""

    key_id: str | None
    """What the header of its tokens calls it, `kid`; None if it has no name."""
    key: Any
    algorithms: tuple[str, ...]


def refused(why: str) -> None:
    """Log why a token is refused; `why` has nothing that it says. Each caller is bounded alone."""
    logger.warning("Refused a token: %s", why, stacklevel=2)


def claims_in(
    token: str,
    keys: Iterable[VerificationKey],
    *,
    issuers: Sequence[str],
    audiences: Sequence[str],
    clock_skew: float = 0,
) -> dict[str, Any] | None:
    """Return the claims of a token that one of the keys signed, and that is good now; else None.

    `clock_skew` is by how many seconds the issuer's clock may differ.
    """
    import jwt

    reasons: dict[type[Exception], str] = {
        jwt.ExpiredSignatureError: "it has expired",
        jwt.InvalidAudienceError: f"its audience (aud) is not {' or '.join(audiences)}",
        jwt.InvalidIssuerError: f"its issuer (iss) is not {' or '.join(issuers)}",
        jwt.ImmatureSignatureError: "it is not good yet: compare the clocks",
    }
    for key in keys:
        try:
            return jwt.decode(
                token,
                key.key,
                algorithms=key.algorithms,
                audience=audiences,
                issuer=issuers,
                leeway=clock_skew,
                options={
                    "require": ["iss", "sub", "aud", "exp"],
                    "enforce_minimum_key_length": True,
                },
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            why = reasons.get(type(error))
            if isinstance(error, jwt.MissingRequiredClaimError):
                why = f"it lacks the claim {error.claim}"
            if why is not None:
                refused(why)
                return None
            # It is not signed with this key; or, if it is, malformed.
    refused("it is signed with no key that is known here, or malformed")
    return None


def access_of(
    token: str, claims: dict[str, Any], *, customer: str, scopes: object, resource: str
) -> AccessToken:
    """Return what the claims let the bearer of the token do, as `customer` at `resource`.

    `scopes` are separated by blanks, or a list; anything else is none.
    """
    listed = scopes.split() if isinstance(scopes, str) else scopes
    client_id = claims.get("client_id")
    return AccessToken(
        token=token,
        client_id=client_id if isinstance(client_id, str) else claims["sub"],
        scopes=[one for one in listed if isinstance(one, str)] if isinstance(listed, list) else [],
        expires_at=int(claims["exp"]),
        resource=resource,
        subject=customer,
        claims={"iss": claims["iss"]},
    )


@dataclass(frozen=True, repr=False)
class Tokens(TokenVerifier):
    """Mints and verifies the tokens for a trial of one HTTP server: signed JWTs (RFC 7519)."""

    key: bytes
    resource: str
    """The server's URL: the tokens' audience."""
    local: bool = False
    """No URL is configured, so that tokens are minted for `LOCAL`, and taken as well."""
    other_keys: tuple[bytes, ...] = ()
    """What else a token may be signed with."""

    @classmethod
    def of(cls, settings: Settings, keys: Keys) -> Self:
        """Return the tokens of the server with these settings."""
        others = tuple(other.tokens for other in keys.others)
        return cls(keys.tokens, settings.resource, settings.resource_url is None, others)

    def mint(
        self, customer: str, scopes: Sequence[str], *, now: datetime, lifetime: timedelta
    ) -> str:
        """Return a token that lets its bearer act for `customer` within `scopes`."""
        claims = {
            "iss": LOCAL,
            "sub": customer,
            "aud": LOCAL if self.local else self.resource,
            "iat": now,
            "exp": now + lifetime,
            "client_id": CLIENT_ID,
            "scope": " ".join(scopes),
        }
        import jwt  # Over stdio there are no tokens, and nobody waits for this.

        return jwt.encode(claims, self.key, algorithm=ALGORITHM)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a good token says, or None for any other, without saying why."""
        claims = claims_in(
            token,
            [VerificationKey(None, key, (ALGORITHM,)) for key in (self.key, *self.other_keys)],
            issuers=[LOCAL],
            audiences=[self.resource, *([LOCAL] if self.local else [])],
        )
        if claims is None:
            return None
        return access_of(
            token,
            claims,
            customer=claims["sub"],
            scopes=claims.get("scope"),
            resource=self.resource,
        )


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched yet, so that no token can be checked."""

    def __init__(self, retry_seconds: float) -> None:
        super().__init__("The issuer's keys could not be fetched yet.")
        self.retry_seconds = retry_seconds


class CustomerTokens(TokenVerifier):
    """Accepts good tokens whose subject is a customer; any other subject is as good as none.

    What was accepted stays accepted for `REMEMBERED_SECONDS`, but never beyond its expiry.
    """

    def __init__(
        self,
        tokens: TokenVerifier,
        is_customer: Callable[[str], Awaitable[bool]],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` returns the seconds since 1970, in which a token's expiry is given."""
        self._tokens = tokens
        self._is_customer = is_customer
        self._now = now
        self._accepted: dict[str, tuple[float, AccessToken]] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token says; None if it is refused.

        Raises `KeysUnavailable`, or what asking the bank raised.
        """
        now = self._now()
        since, access = self._accepted.get(token, (now, None))
        if access is None or not since <= now < since + REMEMBERED_SECONDS:
            access = await self._checked(token)
            self._accepted.pop(token, None)
            if access is not None:
                if len(self._accepted) >= _MOST_REMEMBERED:
                    self._accepted.pop(next(iter(self._accepted)))
                self._accepted[token] = (now, access)
        if access is not None and access.expires_at is not None and access.expires_at <= now:
            refused("it has expired")
            return None
        return access

    async def _checked(self, token: str) -> AccessToken | None:
        access = await self._tokens.verify_token(token)
        if access is None or access.subject is None:
            return None
        if not await self._is_customer(access.subject):
            refused("it is for nobody who is a customer here")
            return None
        return access
