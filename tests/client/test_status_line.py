"""The line that says what is waited for: when it is there, what it says, and that it goes away."""

import os
import select

import pytest

from banking_server.client.status_line import StatusLine

from ..kit.command import PATIENCE


def test_the_status_line_shows_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    theirs, ours = os.openpty()

    def comes(text: str) -> bool:
        """Wait until a text is written from now on."""
        shown = ""
        while text not in shown:
            assert select.select([theirs], [], [], PATIENCE)[0], f"no {text!r} in {shown!r}"
            shown += os.read(theirs, 65536).decode()
        return True

    with os.fdopen(ours, "w", encoding="utf-8") as stream:
        waiting = StatusLine(stream)
        waiting.show("Waiting for pack")
        assert comes("Waiting for pack")
        waiting.show("Pack\x1b[31ming\nnow" + "x" * 100)
        assert comes("Pack\\x1b[31ming now")
        assert comes("xxx\u2026")
        waiting.remove()
        assert comes("\x1b[2K")
    os.close(theirs)
