"""What attackers and strange environments sent to the proxy, each as one row of its kind."""

import json
import subprocess
from pathlib import Path

import pytest

from tool_chaining_proxy.client_side import callers
from tool_chaining_proxy.options import Address, ProxyOptions

from ..kit.command import PATIENCE, environment
from ..kit.serving import Handler, serving
from .scripted import Shop, said
from .test_rules import GOOD, THEN_HOLD, shop, written
from .wire import CHAINING, JSON, NEW, PROXY, Refused, Wire, proxy_in_a_thread, wire

pytestmark = pytest.mark.anyio

HOSTILE = "x\x1b]0;y\x07\x9b31m\u202e\x85\u2028::error::gone"
"""A name that takes over a terminal, or a log in CI, where it comes out as it is."""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    command = [*PROXY, *arguments]
    return subprocess.run(
        command, capture_output=True, timeout=PATIENCE, env=environment(**variables), check=False
    )


# --- a record of doubt, over HTTP -----------------------------------------------------------------


class Door(Handler):
    """A server of 2026-07-28 that accepts one token; its payment is lost once."""

    paid = 0
    connected = 0
    """How often the proxy connected with the good token."""

    def do_POST(self) -> None:
        message = self.message()
        if self.headers["authorization"] != "Bearer good":
            return self.answer(401, headers={"www-authenticate": "Bearer"})
        params, kind = message.get("params", {}), message["method"]
        result: JSON = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if kind == "server/discover":
            Door.connected += 1
            result |= {"supportedVersions": [NEW]}
            result["capabilities"] = {"tools": {}, "extensions": {CHAINING: {}}}
        elif kind == "tools/list":
            result["tools"] = [{"name": "pay", "inputSchema": {}}]
        elif params["name"] == "prepare":
            result |= said("Prepared.", "pay")["result"]
        else:
            Door.paid += 1
            self.close_connection = True
            return None
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return self.answer(200, body, {"content-type": "application/json"})


async def test_callers_without_a_token_erase_nobody_s_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "MAX_RECORDS", 3)
    Door.paid = Door.connected = 0
    with serving(Door) as origin:
        options = ProxyOptions(Address(origin), Shop(Path(), NEW).options().consent)
        with proxy_in_a_thread(options, forward_authorization=True, max_callers=4) as url:

            async def pay() -> JSON:
                async with wire(url, NEW, authorization="Bearer good", capabilities={}) as caller:
                    return await caller.call("prepare", {"to": "Ann"})

            assert (await pay())["_meta"][CHAINING]["outcome"] == "failed"
            for number in range(8):
                junk = Wire(url, NEW, authorization=f"Bearer {number}")
                with pytest.raises(Refused) as refused:
                    await junk.open()
                assert refused.value.status == 401
                await junk.http.aclose()
            assert "may have taken effect" in json.dumps(await pay())
    assert (Door.paid, Door.connected) == (1, 1), "nor takes its place"


# --- files ----------------------------------------------------------------------------------------


def test_a_file_that_is_too_large_or_too_deep_is_refused_in_one_line(tmp_path: Path) -> None:
    good = written(tmp_path, GOOD)
    deep = written(tmp_path, "a" + ".a" * 2_000 + " = 1\n", "deep.toml")
    nested = written(tmp_path, THEN_HOLD + "{ id" + ".a" * 2_000 + " = 1 }\n", "nested.toml")
    result = written(tmp_path, "[" * 20_000 + "]" * 20_000, "result.json")
    for arguments in (
        *(("--rules", file, "--", "true") for file in ("/dev/zero", deep, nested)),
        ("--rules", good, "--try", result),
        ("--consent", "/dev/zero", "--", "true"),
    ):
        ended = run(*arguments)
        assert ended.returncode == 2, arguments
        assert ended.stderr.count(b"\n") == 1, ended.stderr[-300:]


# --- what people read -----------------------------------------------------------------------------


def test_a_server_s_text_does_not_control_the_terminal(tmp_path: Path) -> None:
    """Neither in the output of `--check`, on any terminal, nor on standard error."""
    tool = {
        "name": "hold",
        "inputSchema": {"type": "object", "properties": {f"{HOSTILE} \u0416": {}}},
    }
    listed = [
        {"name": "search", "inputSchema": {}},
        tool,
        {"name": HOSTILE},
        {"name": HOSTILE, "t": 1},
    ]
    server = shop(tmp_path, tools=[listed])
    rules = written(tmp_path, THEN_HOLD + "{ 'x]0;y31m::error::gone' = 1 }\n")
    for encoding in ("utf-8", "ascii"):
        variables = {"PYTHONIOENCODING": encoding}
        ended = run("--rules", rules, "--check", "--", *server.command, **variables)
        assert ended.returncode == 1, ended.stderr
        shown = (ended.stdout + ended.stderr).decode(encoding)
        assert "Did you mean" in shown
        assert "is listed twice" in shown
        assert not any(character in shown for character in "\x1b\x07\x9b\u202e\x85\u2028")
        assert not any(line.startswith("::") for line in shown.splitlines())


@pytest.mark.parametrize("proxy", ["socks://user:secret@localhost:1", "http://x:bad"])
def test_a_proxy_variable_that_cannot_be_used_is_named(proxy: str, tmp_path: Path) -> None:
    """A server on this computer never needs one."""
    rules = written(tmp_path, GOOD)
    away = run("--rules", rules, "--check", "--url", "https://192.0.2.1/", ALL_PROXY=proxy)
    assert away.returncode == 2
    assert b"ALL_PROXY names a proxy that cannot be used" in away.stderr
    assert b"secret" not in away.stderr
    assert away.stderr.count(b"\n") == 1
    here = run("--rules", rules, "--check", "--url", "http://127.0.0.1:1/", ALL_PROXY=proxy)
    assert b"the connection was refused" in here.stderr
