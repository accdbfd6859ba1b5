"""The server's secret, the keys made of it, and the check of bearer tokens."""

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
from tool_chaining.hosting.errors import ForPeople

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


class SecretUnavailable(ForPeople):
    """There is no usable secret; the message is one line and says what to do."""


@dataclass(frozen=True, repr=False)
class Keys:
    """One key for each use of the secret, so that a value for one use is invalid in another."""

    tokens: bytes
    confirmation_codes: bytes
    request_state: bytes
    others: tuple[Self, ...] = ()
    """The keys of older secrets, which are still accepted while the secret is changed."""

    @classmethod
    def derive(cls, secret: bytes, *others: bytes) -> Self:
        """Return the keys of a secret. The same secret always has the same keys."""

        def key(purpose: str) -> bytes:
            return hmac.digest(secret, f"banking-server/1/{purpose}".encode(), hashlib.sha256)

        return cls(
            key("tokens"),
            key("confirmation codes"),
            key("request state"),
            tuple(cls.derive(other) for other in others),
        )


def load_keys(settings: Settings, *, may_make: bool = True) -> Keys:
    """Return the keys of `BANKING_SECRET` or of the secret file.

    With `may_make`, a missing file is created. Raises `SecretUnavailable`.
    """
    if settings.secret is not None:
        return Keys.derive(*secrets_in(settings.secret.get_secret_value().encode()))
    path = settings.secret_path
    if path is None:
        raise SecretUnavailable(
            "With PostgreSQL, set BANKING_SECRET or BANKING_SECRET_FILE to the secret that all "
            "its servers share."
        )
    try:
        # Never for PostgreSQL: a second secret would make tokens and codes of others invalid.
        if may_make and isinstance(settings.database, Path) and not path.exists():
            _make_secret_file(path)
        return Keys.derive(*_read_secret_file(path))
    except OSError as error:
        problem = error.strerror or "the path is not usable"
        raise SecretUnavailable(f"The secret file {path} cannot be used: {problem}.") from error


def _make_secret_file(path: Path) -> None:
    """Make the file with a new secret, unless another process has made it.

    The file appears under its name complete and readable by its owner only, or not at all.
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
    """A key that checks tokens, with the only signature algorithms that it is accepted for."""

    key_id: str | None
    """The `kid` in the header of its tokens; None if it has none."""
    key: Any
    algorithms: tuple[str, ...]


def log_refused_token(why: str) -> None:
    """Log why a token is refused. `why` must not repeat any part of the token."""
    logger.warning("Refused a token: %s", why, stacklevel=2)


def verified_claims(
    token: str,
    keys: Iterable[VerificationKey],
    *,
    issuers: Sequence[str],
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
        jwt.InvalidIssuerError: f"its issuer (iss) is not {' or '.join(issuers)}",
        jwt.ImmatureSignatureError: "it is not valid yet: compare the clocks",
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
                log_refused_token(why)
                return None
            # Another key signed it, or it is malformed.
    log_refused_token("it is not signed with a known key, or it is malformed")
    return None


def access_token(
    token: str, claims: dict[str, Any], *, customer: str, scopes: object, resource: str
) -> AccessToken:
    """Return the SDK's model of a verified token, for `customer` at `resource`.

    `scopes` is a text with spaces between the scopes, or a list. Anything else means no scope.
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
            [VerificationKey(None, key, (ALGORITHM,)) for key in (self.key, *self.other_keys)],
            issuers=[LOCAL],
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


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched yet, so no token can be checked."""

    def __init__(self, retry_seconds: float) -> None:
        super().__init__("The issuer's keys could not be fetched yet.")
        self.retry_seconds = retry_seconds


class CustomerTokens(TokenVerifier):
    """Accepts valid tokens whose subject is a customer.

    An accepted token is not checked again for `REMEMBERED_SECONDS`, except for its expiry.
    """

    def __init__(
        self,
        tokens: TokenVerifier,
        is_customer: Callable[[str], Awaitable[bool]],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` returns the seconds since 1970, for the expiry of a token."""
        self._tokens = tokens
        self._is_customer = is_customer
        self._now = now
        self._accepted: dict[str, tuple[float, AccessToken]] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a valid token, or None.

        Raises `KeysUnavailable`, or an exception of the bank.
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
            log_refused_token("it has expired")
            return None
        return access

    async def _checked(self, token: str) -> AccessToken | None:
        access = await self._tokens.verify_token(token)
        if access is None or access.subject is None:
            return None
        if not await self._is_customer(access.subject):
            log_refused_token("its subject is not a customer of this bank")
            return None
        return access
