"""The prompt: shown to a person alone."""

import io

import pytest

from banking_server.host.typed import read_line


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_prompt_is_for_a_person_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Somebody types, and a program reads.
    monkeypatch.setattr("sys.stdin", Screen("hello\n"))
    assert read_line("you> ") == "hello"
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "you> ")
    # A program writes too.
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo"))
    assert [read_line("you> "), read_line("you> ")] == ["one", "two"]
    with pytest.raises(EOFError):
        read_line("you> ")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")
