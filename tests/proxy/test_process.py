"""The process over stdio among real hosts and servers: scripts, unread logs, and floods."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ..kit.command import PATIENCE, environment
from ..kit.stdio import lines_of
from .scripted import Shop, said
from .wire import CLIENT, JSON, OLD, PROXY

INITIALIZE = {
    "id": "0",
    "method": "initialize",
    "params": {"protocolVersion": OLD, "capabilities": {"elicitation": {}}, "clientInfo": CLIENT},
}
WHO = {"protocolVersion": OLD, "capabilities": {}, "serverInfo": {}}
GREETED = json.dumps({"jsonrpc": "2.0", "id": 1, "result": WHO})


def in_shell(*lines: str) -> list[str]:
    """The proxy in front of a server that greets it, and then does what these lines say."""
    return [*PROXY, "--", "sh", "-c", "\n".join(["read -r first", f"echo '{GREETED}'", *lines])]


def request(name: str, number: Any = 1) -> JSON:
    return {"id": number, "method": "tools/call", "params": {"name": name}}


def script(command: list[str], *messages: Any) -> tuple[list[JSON], str]:
    """Give a program all its messages at once, and return what it answers."""
    lines = [
        line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0", **line})
        for line in (INITIALIZE, {"method": "notifications/initialized"}, *messages)
    ]
    ended = subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env=environment(),
    )
    assert ended.returncode == 0
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


def test_every_request_of_a_script_is_answered(tmp_path: Path) -> None:
    """Whatever the ids are, and though the input ends at once."""
    numbers: list[Any] = [1, "1", "", 1.0, 1.5, None, [2], {"a": 1}, True, -1]
    shop = Shop(tmp_path, answers={"pay": [{**said("Paid."), "after": 0.5}]})
    unreadable = [
        "\ufeff" + json.dumps({"jsonrpc": "2.0", **request("pay", "bom")}),
        '{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"\\ud83d"}}',
        '{"jsonrpc":"2.0","id":"tab","method":"\t"}',
        '{"jsonrpc":"2.0","id":"what","method":5}',
        '{"jsonrpc":"2.0","id":"meta","method":"tools/list","params":{"_meta":7}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}',
        "junk",
    ]
    command = [*PROXY, "--consent", "all", "--", *shop.command]
    answers, errors = script(command, *(request("pay", n) for n in numbers), *unreadable)
    ids = [json.dumps(one["id"]) for one in answers if one["id"] != "0"]
    expected = [*numbers, "bom", "half", "tab", "what", "meta", 1, None]
    assert sorted(ids) == sorted(map(json.dumps, expected))
    refused = [one["id"] for one in answers if "error" in one]
    assert sorted(map(str, refused)) == ["None", "half", "meta", "tab", "what"]
    assert "Traceback" not in errors


def test_a_question_after_the_end_of_input_is_refused() -> None:
    question = '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}'
    reads = ["read -r greeted", "read -r called"]
    asks = [f"echo '{question}'", "read -r answer", 'echo "$answer" >&2']
    _, errors = script(in_shell(*reads, *asks), request("ask"))
    assert "nobody can answer" in errors


def test_an_unread_standard_error_does_not_block(tmp_path: Path) -> None:
    shop = Shop(tmp_path, errors=10_000)
    with lines_of([*PROXY, "--consent", "all", "--", *shop.command]) as proxy:
        proxy.open({})
        for number in range(2, 7):
            assert len(proxy.call(number, "prepare", {"to": str(number)})["result"]["content"]) == 3
        proxy.send({"id": 7, "method": "ping"})
        assert proxy.said()["id"] == 7
        _, errors = proxy.end()
        assert "lines were dropped" in errors


def test_server_text_on_standard_error_is_escaped() -> None:
    error = (
        r'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x\u001b]0;y\u0007\nproxy: fine"}}'
    )
    command = f"read line; printf '\\033[31mred\\n' >&2; printf '%s\\n' '{error}'"
    answers, errors = script([*PROXY, "--", "sh", "-c", command])
    assert "error" in answers[0]
    assert "\x1b" not in errors
    assert "[server] \\x1b[31mred\n" in errors
    assert "x\\x1b]0;y\\x07 proxy: fine\n" in errors


@pytest.mark.parametrize("ends", ["alone", pytest.param("by a signal", marks=pytest.mark.ci)])
def test_a_flooding_server_is_disconnected(ends: str) -> None:
    with lines_of(in_shell("""yes '{"jsonrpc":"2.0","id":7,"method":"ping"}'""")) as proxy:
        proxy.open({})
        if ends == "alone":
            assert "100 open requests" in proxy.call(2, "any", {})["error"]["message"]
        else:
            time.sleep(0.5)
            proxy.process.send_signal(signal.SIGTERM)
        proxy.end()
