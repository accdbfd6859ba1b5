"""A file replaced whole or not at all, with a copy of the old one beside it."""

import os
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from banking_server.installing.unreadable import Unreadable


def replace(path: Path, old: bytes | None, new: bytes, now: datetime) -> Path | None:
    """Write a file anew, and return the copy of the old one, if there was one.

    A link stays one: what it leads to is written. The file keeps its mode, and its owner where that
    is allowed; a copy never replaces another. Raises `Unreadable` if the file is no longer `old`,
    must not be written, or cannot be.
    """
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise Unreadable("it is a link that leads back to itself")
    try:
        return _replace(real, old, new, now)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Unreadable(f"it cannot be written ({why})") from error


def _replace(path: Path, old: bytes | None, new: bytes, now: datetime) -> Path | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.stat() if path.exists() else None
    if there and not there.st_mode & 0o222:
        raise Unreadable("it is read-only")
    draft, copy = path.with_name(f".{path.name}.{secrets.token_hex(4)}"), None
    try:
        _write(draft, new, there)
        if there and old is not None:
            copy = _copy(path, old, there, now)
        # Hosts write these files too, and so may a second run of this: nothing slow comes after.
        if (path.read_bytes() if path.exists() else None) != old:
            if copy:
                copy.unlink()
            raise Unreadable("it has changed in the meantime: look at it, and run this again")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return copy


def _copy(path: Path, content: bytes, like: os.stat_result, now: datetime) -> Path:
    """Keep the old file under a name that nothing has."""
    name = f"{path.name}.replaced-{now:%Y%m%dT%H%M%SZ}"
    copy, number = path.with_name(name), 2
    while copy.exists():
        copy, number = path.with_name(f"{name}-{number}"), number + 1
    _write(copy, content, like)
    return copy


def _write(path: Path, content: bytes, like: os.stat_result | None) -> None:
    """Write a new file, and wait until it is on the disk; `like` has its owner and its mode.

    Raises `OSError`.
    """
    # It may hold secrets, so nobody else can read it before its mode is set.
    mode = 0o666 if like is None else 0o600
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if like is not None:
        with suppress(OSError, AttributeError):  # Windows has no owners of this kind.
            os.chown(path, like.st_uid, like.st_gid)
        path.chmod(like.st_mode & 0o7777)
