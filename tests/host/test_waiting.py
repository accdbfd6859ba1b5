"""The line that says what is waited for: when it is there, what it says, and that it goes away."""

import os
import select
from collections.abc import Iterator
from contextlib import closing

import pytest

from banking_server.host import waiting as module
from banking_server.host.waiting import Waiting

from ..kit.command import PATIENCE

pytestmark = pytest.mark.anyio


class Screen:
    """A terminal, and what was written to it."""

    def __init__(self) -> None:
        self._theirs, ours = os.openpty()
        self.stream = os.fdopen(ours, "w", encoding="utf-8")
        self.shown = ""

    def wait_for(self, text: str) -> str:
        """Return what is written from now on, up to `text`."""
        before = len(self.shown)
        while text not in self.shown[before:]:
            ready, _, _ = select.select([self._theirs], [], [], PATIENCE)
            assert ready, f"no {text!r} in {self.shown[before:]!r}"
            self.shown += os.read(self._theirs, 65536).decode()
        return self.shown[before:]

    def close(self) -> None:
        self.stream.close()
        os.close(self._theirs)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setattr(module, "DELAY", 0)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    with closing(Screen()) as screen:
        yield screen


async def test_what_is_waited_for_and_how_far_it_is(screen: Screen) -> None:
    waiting = Waiting(screen.stream)
    waiting.on("Waiting for pack")
    screen.wait_for("Waiting for pack")
    await waiting.progressed(3, 10, "Pack\x1b[31ming\nnow")
    screen.wait_for(": 3 of 10, Pack\\x1b[31ming now")
    await waiting.progressed(0.5, None, None)
    screen.wait_for("pack: 0.5\x1b")
    await waiting.progressed(4, None, "Wrapping")
    screen.wait_for("pack: Wrapping\x1b")
    waiting.says("x" * 100)
    screen.wait_for("xxx\u2026")
    waiting.over()
    assert "\x1b[?25h" in screen.wait_for("\x1b[2K")
