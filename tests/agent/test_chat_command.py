"""`banking-server chat` as people use it: in a real terminal, with real servers as subprocesses."""

import fcntl
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from banking_server.cli import main

from . import shop_server
from .scripted_model import Script, ScriptedModel, Silence, call, scripted_model
from .shop_server import SECRET

PATIENCE = 60
PACKAGES = os.pathsep.join(path or os.getcwd() for path in sys.path)


def environment(model: ScriptedModel | None, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BANKING_")}
    kept |= {"PYTHONPATH": PACKAGES, "TERM": "dumb", "INPUTRC": os.devnull}
    # So wide that no text is wrapped which a test waits for.
    kept |= {"COLUMNS": "400", "LINES": "40"}
    kept["BANKING_DATABASE"] = str(folder / "bank.db")
    if model is not None:
        kept |= {
            "BANKING_MODEL_URL": model.url,
            "BANKING_MODEL_NAME": "scripted",
            "BANKING_MODEL_TOOLS": "prompt",
        }
    return kept


class Session:
    """A chat in a terminal, and the person who sits there."""

    def __init__(self, model: ScriptedModel, folder: Path, command: Sequence[str]) -> None:
        self.screen = ""
        self._seen = 0
        self._main, terminal = pty.openpty()

        def sit_down() -> None:
            # Ctrl-C reaches who has the terminal for its own, and does what it does for a person,
            # even where whatever runs the tests ignores it, as a job in the background does.
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [sys.executable, "-m", "banking_server", "chat", *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment(model, folder),
            start_new_session=True,
            preexec_fn=sit_down,
        )
        os.close(terminal)

    def wait_for(self, text: str) -> None:
        """Read the screen until it shows `text`, after what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < end, f"no {text!r} in {self.screen!r}"
            assert self._read(), f"ended without {text!r}: {self.screen!r}"
        self._seen = found + len(text)

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def interrupt_until(self, text: str) -> None:
        """Press Ctrl-C at the prompt until `text` shows that it was seen.

        CPython misses one that comes between a key and its waiting for the next: a person would
        press again.
        """
        end = time.monotonic() + PATIENCE
        while self.screen.find(text, self._seen) < 0:
            assert time.monotonic() < end, f"no {text!r} in {self.screen!r}"
            self.press("\x03")
            while select.select([self._main], [], [], 1)[0]:
                assert self._read(), f"ended without {text!r}: {self.screen!r}"
        self._seen = self.screen.find(text, self._seen) + len(text)

    def finish(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._main], [], [], PATIENCE)
        assert ready, f"nothing happens any more: {self.screen!r}"
        try:
            read = os.read(self._main, 65536)
        except OSError:  # Linux says so when the other side is closed.
            return False
        self.screen += read.decode().replace("\r\n", "\n")
        return bool(read)


class Shop:
    """The shop's server as a subprocess, and the calls that reached it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "calls"
        self._file.touch()
        self.command = ["--", sys.executable, shop_server.__file__, str(self._file)]

    def calls(self) -> list[list[object]]:
        return [json.loads(line) for line in self._file.read_text("utf-8").splitlines()]

    def wait_for_call(self, tool: str) -> None:
        end = time.monotonic() + PATIENCE
        while [tool] not in [one[:1] for one in self.calls()]:
            assert time.monotonic() < end, f"{tool} was never called"
            time.sleep(0.02)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def sessions() -> Iterator[list[Session]]:
    started: list[Session] = []
    yield started
    for session in started:
        session.close()


def test_a_conversation_in_the_terminal(
    tmp_path: Path, shop: Shop, sessions: list[Session]
) -> None:
    """One conversation: consent, a question, Ctrl-C everywhere, the history, and the end."""
    script: Script = [
        call("buy", door="oak"),
        "You bought oak.",
        call("survey"),
        "You like doors.",
        call("code"),
        call("hang"),
        call("buy", door="elm"),
        "I am still here.",
        Silence(),
        "Me too.",
        "Me three.",
    ]
    with scripted_model(script) as model:
        session = Session(model, tmp_path, shop.command)
        sessions.append(session)
        session.wait_for("Model: scripted. Tools: price, buy")

        session.wait_for("you> ")
        session.press("Buy an oak door.\n")
        session.wait_for('with     {"door": "oak"}')
        session.wait_for("Call it? [y/N] ")
        assert shop.calls() == []
        session.press("y\n")
        session.wait_for("bought oak")
        session.wait_for("You bought oak.\n")
        session.wait_for("[1 call by the model")

        session.wait_for("you> ")
        session.press("Ask me.\n")
        session.wait_for("Do you like doors?")
        session.wait_for("y/n")
        session.press("y\n")
        session.wait_for("You like doors.\n")
        assert shop.calls()[-1] == ["survey", {"answer": "accept"}]

        session.wait_for("you> ")
        session.press("Give me a code, then hang.\n")
        session.wait_for(SECRET)
        shop.wait_for_call("hang")
        session.press("\x03")
        session.wait_for("Done so far: code (by the model). The call of hang was under way")

        session.wait_for("you> ")
        session.press("Then buy an elm door.\n")
        session.wait_for("Call it? [y/N] ")
        session.press("\x03")
        session.wait_for("No tool call was completed.")

        session.wait_for("you> ")
        session.press("half a line")
        session.wait_for("half a line")
        session.interrupt_until("(Ctrl-D or /quit ends the conversation.)")
        session.wait_for("you> ")
        session.press("Still there?\n")
        session.wait_for("I am still here.\n")

        session.wait_for("you> ")
        session.press("Think for ever.\n")
        assert model.silent.wait(PATIENCE)
        session.press("\x03")
        session.wait_for("No tool call was completed.")

        session.wait_for("you> ")
        session.press("And you?\n")
        session.wait_for("Me too.\n")
        session.wait_for("you> ")
        session.press("\x1b[A\n")
        session.wait_for("Me three.\n")

        session.wait_for("you> ")
        session.press("\x04")
        assert session.finish() == 0
    assert [message["content"] for message in model.requests[-1]["messages"][-3:]] == [
        "And you?",
        "Me too.",
        "And you?",
    ]
    assert "half a line" not in model.told
    assert SECRET not in model.told
    assert [tool for tool, _ in shop.calls()] == ["buy", "survey", "code", "hang"]
    assert "Traceback" not in session.screen


def test_the_banks_own_server_and_its_directive(tmp_path: Path, sessions: list[Session]) -> None:
    """The bank's own server: one call by the model, and the directive does the rest."""
    script = [
        call("list_accounts"),
        call(
            "prepare_money_transfer",
            fromAccountId="acc_checking_001",
            toAccountId="acc_savings_001",
            amount=100,
        ),
        "An agent will call you.",
    ]
    with scripted_model(script) as model:
        session = Session(model, tmp_path, ["--customer", "CUST001"])
        sessions.append(session)
        session.wait_for("you> ")
        session.press("Move 100 from checking to savings.\n")
        session.wait_for("prepare_money_transfer")
        session.wait_for("Call it? [y/N] ")
        session.press("y\n")
        session.wait_for("request_agent_handoff")
        session.wait_for("_meta.nextTool = ")
        session.wait_for("How would you like to be connected?")
        session.wait_for("1-2")
        session.press("2\n")
        session.wait_for("An agent will call you.\n")
        session.wait_for("[2 calls by the model, 1 call by directive; 3 replies")
        session.wait_for("you> ")
        session.press("/quit\n")
        assert session.finish() == 0
    assert "I'm sorry" in session.screen
    assert "I'm sorry" not in model.told
    assert len(model.requests) == 3
    assert "A customer service agent will call you back." in model.last_message()


def test_without_a_terminal_nothing_is_asked(tmp_path: Path, shop: Shop) -> None:
    script = [call("price", door="oak"), call("buy", door="oak"), "Nobody agreed."]
    with scripted_model(script) as model:
        ran = subprocess.run(
            [sys.executable, "-m", "banking_server", "chat", *shop.command],
            input="Buy an oak door.\n",
            capture_output=True,
            text=True,
            env=environment(model, tmp_path),
            timeout=PATIENCE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Nobody agreed.\n" in ran.stdout
    assert "(Not called: buy." in ran.stdout
    assert "you>" not in ran.stdout
    assert [tool for tool, _ in shop.calls()] == ["price"]


@pytest.mark.parametrize(
    ("configured", "command", "told"),
    [
        (False, [], "No model is configured: set BANKING_MODEL_URL."),
        (True, ["--", "no-such-command"], "Cannot talk to no-such-command: there is no such"),
        (True, ["--url", "http://127.0.0.1:1/mcp"], "Cannot talk to http://127.0.0.1:1/mcp"),
        (True, ["--url", "http://127.0.0.1:1/mcp", "--", "x"], "not both"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    configured: bool,
    command: list[str],
    told: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["banking-server", "chat", *command])
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with scripted_model([]) as model:
        variables = environment(model if configured else None, tmp_path)
        for name in ("URL", "NAME"):
            monkeypatch.delenv(f"BANKING_MODEL_{name}", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert told in errors
    assert errors.count("\n") == 1 or "not both" in told
