"""`banking-server chat` with several servers, of a file or of the command line."""

import io
import sys
from pathlib import Path

import pytest

from banking_server.cli import main

from ..kit.hostile import hostile_server
from ..kit.model import call, scripted_model


def chat(
    monkeypatch: pytest.MonkeyPatch, url: str, *options: str, lines: str = ""
) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["banking-server", "chat", *options])
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    for name, value in {"URL": url, "NAME": "s", "TOOLS": "prompt", "FORMAT": "none"}.items():
        monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def started(folder: Path, name: str) -> str:
    """The command of a shop that notes its calls in a file."""
    return (
        f"{sys.executable} -c \"import sys; sys.path.insert(0, '{Path(__file__).parents[2]}'); "
        "from pathlib import Path; from tests.agent.shop_server import Log, build; "
        f"build(Log(Path('{folder / name}')), '{name}').run('stdio')\""
    )


def test_the_tools_of_several_servers_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_model([call("one__price", door="oak"), "80."]) as model:
        options = [part for n in ("one", "two") for part in ("--server", started(tmp_path, n))]
        assert chat(monkeypatch, model.url, *options, lines="What is oak?\n") == 0
    assert (tmp_path / "one").read_text().startswith('["price"')
    assert not (tmp_path / "two").exists()
    system = model.requests[0]["messages"][0]["content"]
    assert "The server 'two' lets you know: What is in store." in system
    assert "80." in capsys.readouterr().out


FILE = """
agents:
  - id: first
    system_prompt: Be brief.
    servers:
      - name: here
        url: URL
        token_variable: HERE_TOKEN
      - name: gone
        command: [no-such-command]
"""


def test_a_server_that_fails_is_named_and_mistakes_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agents.yaml"
    mistakes: list[tuple[list[str], str]] = [
        (
            ["--config", str(file)],
            "Server here: the environment variable that token_variable names is not",
        ),
        (["--config", str(tmp_path)], "cannot be read"),
        (["--config", str(file), "--agent", "x"], "there is no agent 'x'"),
        (["--agent", "x"], "--config"),
        (["--config", str(file), "--url", "http://x"], "the servers stand in the file"),
        (["--url", "http://a", "--url", "http://b"], "name a variable for each"),
        (["--server", "'"], "cannot be read"),
        (["--server", ""], "needs a command"),
        (["--url", "http://a", "--customer", "C"], "for this server only"),
    ]
    monkeypatch.setenv("BANKING_TOKEN", "not-for-files")
    with hostile_server() as origin:
        file.write_text(FILE.replace("URL", f"{origin}/escapes_in_names"))
        for options, told in mistakes:
            assert chat(monkeypatch, "http://127.0.0.1:9/v1", *options) == 2
            assert told in " ".join(capsys.readouterr().err.replace("│", " ").split()), options
        monkeypatch.setenv("HERE_TOKEN", "t")
        assert chat(monkeypatch, "http://127.0.0.1:9/v1", "--config", str(file)) != 0
    assert "Server gone: Cannot talk to no-such-command: there is no such command" in (
        capsys.readouterr().err
    )
