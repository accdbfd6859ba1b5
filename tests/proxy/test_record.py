"""`--record`: what the file has, and what ends a recording; then the three commands in a row."""

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from mcp import MCPError

from tool_chaining_proxy.record import MAX_RESULT, Recorder

from ..kit.pages import ROOT
from ..kit.stdio import lines_of
from .scripted import WAYS, Shop, prepare, said
from .test_command import ended, refused
from .test_process import request, script
from .wire import JSON, OLD, PROXY, proxy_in_a_thread, wire

READS = {"readOnlyHint": True}


def lines(path: Path) -> list[JSON]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.anyio
@pytest.mark.parametrize(("way", "revision"), WAYS)
async def test_each_call_is_a_line_and_the_proxys_own_is_marked(
    way: str, revision: str, tmp_path: Path
) -> None:
    answers = {"large": [{"large": MAX_RESULT}], "wrong": [{"error": {"code": 5, "message": ""}}]}
    shop = Shop(tmp_path, revision, READS, answers=answers)
    path = tmp_path / "calls.jsonl"
    async with shop.host(way, shop.options(recorder=Recorder(path))) as host:
        await host.list_tools()
        await prepare(host)
        await host.call_tool("large", {})
        with pytest.raises(MCPError):
            await host.call_tool("wrong", {})
    first, step, large, wrong = found = lines(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one["tool"] for one in found] == ["prepare", "pay", "large", "wrong"]
    assert [one.get("byProxy") for one in found] == [None, True, None, None]
    assert first["arguments"] == {"to": "Ann"}
    assert (first["readOnly"], first["isError"]) == (True, False)
    assert first["content"] == said("Prepared.")["result"]["content"]
    assert first["began"] < first["ended"] <= step["began"] < step["ended"] <= large["began"]
    assert len({one["session"] for one in found}) == 1
    assert large["omitted"] is True
    assert "content" not in large
    assert wrong["unanswered"] is True


@pytest.mark.anyio
async def test_a_recording_holds_no_header_and_tells_sessions_apart(tmp_path: Path) -> None:
    shop, path = Shop(tmp_path), tmp_path / "calls.jsonl"
    with proxy_in_a_thread(shop.options(recorder=Recorder(path))) as url:
        for _ in range(2):
            async with wire(url, OLD, authorization="Bearer hidden") as client:
                await client.call("pay", {})
    assert len({one["session"] for one in lines(path)}) == 2
    assert "hidden" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["folder", "/dev/full", "missing/file"])
def test_what_cannot_be_written_ends_the_recording_and_no_call(file: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    shop, path = Shop(tmp_path), str(tmp_path / file)
    command = [*PROXY, "--record", path, "--", *shop.command]
    answers, errors = script(command, request("pay"), request("pay", 2))
    assert [one["id"] for one in answers if "result" in one] == ["0", 1, 2]
    assert errors.count("\n") == 1
    assert f'no longer recorded in "{path}"' in errors


def test_a_file_of_another_account_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("tool_chaining_proxy.record.write_line", said.append)
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    recorder = Recorder(tmp_path / "theirs")
    recorder.add("1", 0, ("pay", {}), {}, own=True)
    assert len(said) == 1
    assert (tmp_path / "theirs").read_bytes() == b""


def test_lines_of_two_proxies_and_a_torn_line_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"torn', encoding="utf-8")
    recorders = [Recorder(path) for _ in range(2)]
    for number in range(20):
        recorders[number % 2].add("1", number, ("pay", {"n": number}), {}, own=True)
    torn, *rest = path.read_text(encoding="utf-8").splitlines()
    assert torn == '{"torn'
    assert [json.loads(line)["arguments"]["n"] for line in rest] == [*range(20)]


def run(*arguments: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = ended(*arguments)
    return code, out.getvalue(), errors.getvalue()


def test_record_draft_and_check(tmp_path: Path) -> None:
    """The drafted rules pass --check, and make the call that the client made each time."""
    found = {"result": {"content": [], "structuredContent": {"id": "id-$N"}}}
    shop = Shop(tmp_path, hints=READS, answers={"find": [found], "show": [said("Here.")]})
    calls, rules = str(tmp_path / "calls.jsonl"), tmp_path / "rules.toml"
    for number in range(3):
        with lines_of([*PROXY, "--record", calls, "--", *shop.command]) as proxy:
            proxy.open()
            proxy.send({"id": 2, "method": "tools/list"})
            assert proxy.answer() == (2, 0)
            proxy.call(3, "find", {})
            proxy.call(4, "show", {"id": f"id-{number}"})
    with open(calls, "a", encoding="utf-8") as file:
        file.write('{"torn')
    code, draft, _ = run("--draft", calls)
    assert code == 0
    assert "# 3 of 3 times, in 3 sessions\n" in draft
    assert "skipped: 1." in draft
    rules.write_text(draft, encoding="utf-8")
    assert run("--rules", str(rules), "--check", "--", *shop.command)[0] == 0
    with lines_of(
        [*PROXY, "--rules", str(rules), "--consent", "all", "--", *shop.command]
    ) as proxy:
        proxy.open()
        proxy.call(2, "find", {})
    assert shop.made("show")[-1] == {"id": "id-3"}
    assert "[[rule]]" not in run("--draft", calls, "--support", "4")[1]


def test_the_page_s_draft_comes_from_its_recording() -> None:
    folder = ROOT / "specs" / "examples" / "recorded"
    code, draft, _ = run("--draft", str(folder / "commits.jsonl"))
    assert (code, draft) == (0, (folder / "commits.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--draft", "/missing"), "no such file"),
        (("--draft", "/"), "is a directory"),
        (("--draft", __file__), "is not what --record wrote"),
        (("--draft", "/dev/zero"), "is not what --record wrote"),
        (("--support", "2", "--", "true"), "--support needs --draft"),
    ],
)
def test_a_draft_that_cannot_be_made_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(*arguments)
