"""The server's secret, and the keys derived from it."""

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from banking_server.bank.new_file import draft_of, publish
from banking_server.server.settings import MIN_SECRET_LENGTH, Settings, secrets_in
from tool_chaining.errors import ForPeople


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
            "With PostgreSQL, set BANKING_SECRET to the secret that all its servers share."
        )
    try:
        if may_make and not path.exists():
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
