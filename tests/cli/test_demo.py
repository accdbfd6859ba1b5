"""`banking-server demo` in a terminal; `tests/test_readme.py` has what it prints elsewhere."""

import re

import pytest

from ..kit.command import command
from ..kit.terminal import Terminal


@pytest.mark.whole
def test_on_a_narrow_terminal_lines_wrap_and_nothing_is_cut() -> None:
    terminal = Terminal(command("demo"), columns=40)
    assert terminal.finish() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.screen)
    assert "\x1b[" in terminal.screen
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 40
    assert "You'll need to speak with a customer service agent" in " ".join(plain.split())
