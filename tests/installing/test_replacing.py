"""A file replaced whole or not at all."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.installing.replacing import replace
from banking_server.installing.unreadable import Unreadable

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


def test_a_copy_stays_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "new folder/mcp.json"
    assert replace(path, None, b"1", NOW) is None
    path.chmod(0o640)
    copies = [replace(path, old, new, NOW) for old, new in [(b"1", b"2"), (b"2", b"3")]]
    assert [copy.name for copy in copies if copy] == [
        "mcp.json.replaced-20261122T093000Z",
        "mcp.json.replaced-20261122T093000Z-2",
    ]
    assert [copy.read_bytes() for copy in copies if copy] == [b"1", b"2"]
    assert path.read_bytes() == b"3"
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o640}
    assert len(list(path.parent.iterdir())) == 3, "no draft is left"


def test_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles/mcp.json"
    real.parent.mkdir()
    real.write_bytes(b"1")
    link = tmp_path / "mcp.json"
    link.symlink_to(os.path.relpath(real, tmp_path))
    copy = replace(link, b"1", b"2", NOW)
    assert copy is not None
    assert (copy.parent, real.read_bytes(), link.is_symlink()) == (real.parent, b"2", True)


def test_a_file_that_is_not_ours_to_write(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"1")
    with pytest.raises(Unreadable, match="changed in the meantime"):
        replace(path, b"0", b"2", NOW)
    with pytest.raises(Unreadable, match="changed in the meantime"):
        replace(path, None, b"2", NOW)
    path.chmod(0o400)
    with pytest.raises(Unreadable, match="read-only"):
        replace(path, b"1", b"2", NOW)
    with pytest.raises(Unreadable, match="cannot be written"):
        replace(path / "mcp.json", None, b"2", NOW)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"1"]


@pytest.mark.parametrize("old", [None, b"1"])
def test_what_is_written_at_the_last_moment_stays(
    old: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host, or a second run of this, writes the file while this one's own reaches the disk."""
    path = tmp_path / "mcp.json"
    if old is not None:
        path.write_bytes(old)
    waited, fsync = 0, os.fsync

    def meanwhile(file: int) -> None:
        nonlocal waited
        fsync(file)
        waited += 1
        if waited == (1 if old is None else 2):  # the new file; the copy of the old one
            path.write_bytes(b"the host's")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(Unreadable, match="changed in the meantime"):
        replace(path, old, b"2", NOW)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"the host's"]


def test_a_link_to_itself_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "mcp.json"
    link.symlink_to(link)
    with pytest.raises(Unreadable, match="leads back to itself"):
        replace(link, None, b"2", NOW)
    assert link.is_symlink()
