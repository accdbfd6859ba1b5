"""A file that appears under its name complete, or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give an empty file beside `path`, its owner's only, that is gone at the end of the block."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def publish(draft: Path, path: Path) -> None:
    """Let the draft appear as `path`, for good: it is on the disk, under its name.

    Raises `FileExistsError` if there is a file with this name, which stays as it is.
    """
    sync(draft)
    os.link(draft, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """See to it that what a file holds, or which files a folder holds, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows has no such thing.
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
