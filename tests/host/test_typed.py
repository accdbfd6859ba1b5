"""The lines that a person types: which are kept, where, and for whom."""

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from banking_server.host import typed
from banking_server.host.typed import MAX_KEPT, MAX_LINE, TypedLines


class History:
    """Stands for the platform's readline."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add_history(self, line: str) -> None:
        self.lines.append(line)


class Person:
    """Types lines at a terminal, in one conversation after another."""

    def __init__(self, keys: int, screen: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
        self._keys = keys
        self.screen = screen
        self._monkeypatch = monkeypatch

    def types(self, file: Path | None, *lines: str) -> list[str]:
        """Type lines; return those of earlier conversations, which the arrow keys bring."""
        history = History()
        self._monkeypatch.setattr(typed, "_readline", lambda: history)
        self._monkeypatch.setattr("sys.stdout", self.screen)
        reader = TypedLines(file)
        for line in lines:
            os.write(self._keys, f"{line}\n".encode())
            assert reader.read("you> ") == line
        return history.lines


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    theirs, ours = os.openpty()
    with os.fdopen(os.dup(ours), "w") as screen, os.fdopen(ours, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield Person(theirs, screen, monkeypatch)
    os.close(theirs)


def test_what_was_typed_is_there_in_the_next_conversation(person: Person, tmp_path: Path) -> None:
    file = tmp_path / "state" / "history"
    assert person.types(file, "Move 250 to Ada.", "Move 250 to Ada.", "  a \t b ", "", "é") == []
    assert person.types(file) == ["Move 250 to Ada.", "a b", "é"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["history"]


def test_what_is_kept_is_bounded_and_its_owners_alone(person: Person, tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"\xff\n" + b"old\n" * MAX_KEPT)
    file.chmod(0o644)
    assert len(person.types(file, "new", "x" * (MAX_LINE + 1))) == MAX_KEPT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = person.types(file)
    assert (len(kept), kept[0], kept[-1]) == (MAX_KEPT, "old", "new")


def test_nothing_is_kept_where_it_cannot_be_or_is_not_to_be(person: Person, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.symlink_to(os.devnull)
    (tmp_path / "file").touch()
    for nowhere in (None, away, tmp_path, tmp_path / "file" / "history"):
        assert person.types(nowhere, "hello") == []
    assert away.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["away", "file"]


def test_a_link_leads_to_the_file_that_is_kept(person: Person, tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    file.write_text("old\n")
    link.symlink_to(file)
    person.types(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "old\nnew\n"


def test_the_prompt_is_for_a_person_alone(
    person: Person,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    # Somebody types, and a program reads.
    person.screen = io.StringIO()
    assert person.types(tmp_path / "history", "hello") == []
    assert capsys.readouterr().err == "you> "
    # A program writes too.
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo"))
    lines = TypedLines(tmp_path / "history")
    assert [lines.read("you> "), lines.read("you> ")] == ["one", "two"]
    with pytest.raises(EOFError):
        lines.read("you> ")
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "history").exists()


def test_a_platform_without_readline_has_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(typed.sys.modules, "readline", None)
    assert typed._readline() is None
