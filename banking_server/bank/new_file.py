"""Creates a new file atomically: it is complete, or does not exist."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Create an empty file beside `path`, for its owner only; delete it after the block."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def publish(draft: Path, path: Path) -> None:
    """Rename the draft to `path`, and return once file and name are on disk.

    Raises `FileExistsError` if a file already has this name, and leaves that file alone.
    """
    sync(draft)
    os.link(draft, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Write a file's content, or a folder's list of files, to the disk (`fsync`)."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot do this.
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
