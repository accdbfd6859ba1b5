"""`banking-server demo`, as somebody sees it who has just installed the program."""

import json
import re
import tempfile
from pathlib import Path

from ..kit.command import command, run
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, TO_AN_AGENT


def test_the_whole_story_is_told_in_order(tmp_path: Path) -> None:
    # Settings of the person who runs it stay out of it, even bad ones.
    played = run(
        "demo", TMPDIR=str(tmp_path), BANKING_DATABASE="/nowhere/bank.db", BANKING_PORT="none"
    )
    assert (played.returncode, played.stderr) == (0, "")
    handoff = re.search(r"ho_[0-9a-f]{16}", played.stdout)
    assert handoff
    chain = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", played.stdout)
    assert chain
    story = [
        "acc_checking_001  Primary Checking  5,250.75 USD  LOCKED",
        "1. prepare_money_transfer",
        '   with     {"fromAccountId": "acc_checking_001", "toAccountId": "acc_savings_001", '
        '"amount": 250.0}',
        "   because  you asked for it",
        f"   {LOCKED_TEXT}",
        "2. request_agent_handoff",
        f"   with     {json.dumps(TO_AN_AGENT['arguments'])}",
        f"   because  prepare_money_transfer said so: _meta.nextTool = {json.dumps(TO_AN_AGENT)}",
        "     1. Speak to an agent now",
        "     2. Be called back",
        "   The customer answers: 1",
        "Chain completed after 2 calls: the last result names no further tool.",
        "== The agent's desk (banking-server handoffs) ==",
        f"{handoff[0]}  open",
        f"  {TO_AN_AGENT['arguments']['reason']}",
        "== The audit trail (banking-server audit) ==",
        f"  chain {chain[0]}, call 1",
        f"  chain {chain[0]}, call 2, after prepare_money_transfer",
    ]
    lines = iter(played.stdout.splitlines())
    for line in story:
        assert line in lines, f"{line!r} is missing, or not in its place:\n{played.stdout}"
    assert FROM_LOCKED["fromAccountId"] in played.stdout
    assert "\x1b" not in played.stdout
    assert list(tmp_path.iterdir()) == []
    assert Path(tempfile.gettempdir()) != tmp_path


def test_on_a_narrow_terminal_lines_wrap_and_nothing_is_cut() -> None:
    terminal = Terminal(command("demo"), columns=40)
    assert terminal.finish() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.screen)
    assert "\x1b[" in terminal.screen
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 40
    assert LOCKED_TEXT in " ".join(plain.split())
