"""The real server as a subprocess over stdio, as a host runs it."""

import json
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from banking_server.chaining import call_tool_with_chaining

from ..kit.command import PATIENCE, command, environment
from ..kit.servers import Chooser, stdio_client
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, LOCKED_REASON, LOCKED_TEXT, MODES, TO_AN_AGENT, TO_SAVINGS


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_locked_account_hands_itself_off(mode: str, database: Path) -> None:
    customer = Chooser("callback")
    async with stdio_client(database, mode, customer) as client:
        chain = await call_tool_with_chaining(client, "prepare_money_transfer", FROM_LOCKED)
    assert chain.outcome == "completed"
    locked, handoff = chain.steps

    said = locked.result.content[0]
    assert isinstance(said, TextContent)
    assert said.text == LOCKED_TEXT
    assert said.annotations is not None
    assert said.annotations.audience == ["user"]
    assert locked.result.meta is not None
    assert locked.result.meta["nextTool"] == TO_AN_AGENT
    assert locked.result.is_error is False
    assert locked.result.structured_content is not None
    assert locked.result.structured_content["status"]

    assert (handoff.tool, handoff.arguments) == (TO_AN_AGENT["tool"], TO_AN_AGENT["arguments"])
    assert handoff.result.structured_content is not None
    assert handoff.result.structured_content["choice"] == "callback"
    assert len(customer.asked) == 1

    assert rows(database, "SELECT count(*) FROM transfer") == [(0,)]
    assert rows(database, "SELECT customer_id, reason, choice, status FROM handoff") == [
        ("CUST001", LOCKED_REASON, "callback", "open")
    ]
    assert rows(
        database,
        "SELECT tool, chain_id, chain_level, chain_previous_tool "
        "FROM audit_event ORDER BY event_id",
    ) == [
        ("prepare_money_transfer", chain.chain_id, 1, None),
        ("request_agent_handoff", chain.chain_id, 2, "prepare_money_transfer"),
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.nightly)])
async def test_who_declines_to_choose_can_choose_later(mode: str, database: Path) -> None:
    async with stdio_client(database, mode, Chooser(None)) as client:
        await a_megabyte_in_an_argument_is_refused_by_name(client)
        chain = await call_tool_with_chaining(client, "prepare_money_transfer", FROM_LOCKED)
        handoff = chain.steps[-1].result.structured_content or {}
        assert "choice" not in handoff
        chosen = await client.call_tool(
            "process_agent_handoff_choice",
            {"handoffId": handoff["handoffId"], "choice": "realtime"},
        )
    assert (chosen.structured_content or {})["choice"] == "realtime"
    assert rows(database, "SELECT choice, status FROM handoff") == [("realtime", "open")]
    assert rows(database, "SELECT count(*) FROM transfer") == [(0,)]


async def a_megabyte_in_an_argument_is_refused_by_name(client: Client) -> None:
    refused = await client.call_tool(
        "prepare_money_transfer", {**TO_SAVINGS, "amount": 5, "memo": "m" * 1_000_000}
    )
    assert refused.is_error
    assert (refused.structured_content or {})["field"] == "memo"
    assert len(refused.model_dump_json()) < 2000


def initialize() -> list[dict[str, Any]]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def test_standard_output_is_for_the_protocol_alone(database: Path) -> None:
    prepare = {"name": "prepare_money_transfer", "arguments": {**TO_SAVINGS, "amount": 5}}
    messages = [
        *initialize(),
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": prepare},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "no_such_tool"}},
    ]
    server = subprocess.Popen(
        command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(BANKING_DATABASE=str(database), BANKING_LOG_LEVEL="DEBUG"),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("this is no message\n")
    server.stdin.flush()
    answers = [server.stdout.readline()]
    for message in messages:
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        if "id" in message:
            answers.append(server.stdout.readline())
    rest, errors = server.communicate(timeout=PATIENCE)
    assert server.returncode == 0
    read = [json.loads(line) for line in answers + rest.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in read)
    assert [message.get("id") for message in read] == [None, 1, 2, 3]

    assert "Serving CUST001;" in errors
    prepared = next(message["result"] for message in read if message.get("id") == 2)
    assert len(codes := codes_in(prepared)) == 1
    assert not any(code in errors for code in codes)
    assert "Traceback" not in errors


CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"list_accounts",%s}}'

ODD_LINES: list[tuple[str | bytes, tuple[Any, int] | None]] = [
    # What is sent, and the id and the code of the answer, if there is to be one.
    ("this is no message", (None, -32700)),
    (b"\xff\xfe", (None, -32700)),
    ('{"jsonrpc":"2.0","id":1', (None, -32700)),
    ("[]", (None, -32600)),
    ('[{"jsonrpc":"2.0","id":10,"method":"ping"}]', (None, -32600)),
    ('{"jsonrpc":"2.0","id":11,"method":"tools/list","params":5}', (11, -32600)),
    ('{"jsonrpc":"2.0","method":"tools/list","params":5}', None),
    ('{"jsonrpc":"2.0","method":"tools/list","params":{"a":0.010000000000000001}}', None),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', (None, -32600)),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', (None, -32600)),
    (CALL % ("12", f'"arguments":{{"a":{"[" * 10_000}{"]" * 10_000}}}'), (12, -32600)),
    (CALL % ("13", f'"arguments":{{"a":{"1" * 5000}}}'), (13, -32602)),
    (CALL % ("14", '"arguments":{"a":0.010000000000000001}'), (14, -32602)),
    (CALL % ("15", '"arguments":{"a":NaN}'), (15, -32700)),
    (CALL % ("16", r'"arguments":{"a":"\ud800"}'), (16, -32600)),
    (CALL % (r'"\ud800"', '"arguments":{}'), (None, -32600)),
    (CALL % ("1e999", '"arguments":{}'), (None, -32602)),
    (CALL % ("17", '"arguments":5'), (17, -32602)),
    (CALL % ("18", f'"arguments":{{"a":"{"x" * 2**21}"}}'), (18, -32600)),
    ('{"jsonrpc":"2.0","method":"x","params":{"a":"%s"},"id":"a"}' % ("x" * 2**21), ("a", -32600)),
    ("x" * (3 * 2**21), (None, -32600)),
    (" \r", None),
    ('{"jsonrpc":"2.0","id":"nobody asked","result":5}', None),
    ('{"jsonrpc":"2.0","id":[],"error":5}', None),
    ('{"jsonrpc":"2.0","id":19,"method":"prompts/get","params":{"name":"x"}}', (19, -32602)),
    ('{"jsonrpc":"2.0","id":20,"method":"no/such"}', (20, -32601)),
    ('{"jsonrpc":"2.0","id":21,"method":"ping","params":null}', (21, 0)),
    (CALL % ("1" * 4000, '"arguments":{}'), (int("1" * 4000), 0)),
]


def test_whatever_is_sent_is_answered(database: Path) -> None:
    """One server, and after all of it the customer's calls go on."""
    agree = {"elicitation": {}}
    first, initialized = initialize()
    first["params"]["capabilities"] = agree
    prepare = {"name": "prepare_money_transfer", "arguments": {**TO_SAVINGS, "amount": 5}}
    server = subprocess.Popen(
        command("--database", str(database)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout

    def send(line: Any) -> None:
        if isinstance(line, dict):
            line = json.dumps(line)
        stdin.write((line.encode() if isinstance(line, str) else line) + b"\n")
        stdin.flush()

    def answer() -> tuple[Any, int]:
        said = json.loads(stdout.readline())
        return said["id"], said.get("error", {"code": 0})["code"]

    send(first)
    assert answer() == (1, 0)
    send(initialized)
    for line, expected in ODD_LINES:
        send(line)
        if expected is not None:
            assert answer() == expected, line[:80]

    # A question that is answered with what is no answer fails its call, which would wait for ever.
    send({"jsonrpc": "2.0", "id": 30, "method": "tools/call", "params": prepare})
    transfer_id = json.loads(stdout.readline())["result"]["structuredContent"]["transferId"]
    confirm = {"transferId": transfer_id, "action": "confirm"}
    params = {"name": "confirm_or_cancel_money_transfer", "arguments": confirm}
    send({"jsonrpc": "2.0", "id": 31, "method": "tools/call", "params": params})
    question = json.loads(stdout.readline())
    assert question["method"] == "elicitation/create"
    send({"jsonrpc": "2.0", "id": question["id"], "result": True})
    assert answer() == (31, -32600)
    send({"jsonrpc": "2.0", "id": 31, "method": "tools/call", "params": params})
    yes = {"action": "accept", "content": {"agreed": True}, "zz": 1}
    send({"jsonrpc": "2.0", "id": json.loads(stdout.readline())["id"], "result": yes})
    refused = json.loads(stdout.readline())["result"]["structuredContent"]
    assert refused["status"] == "invalid_answer"

    # The last line needs no end.
    stdin.write(b'{"jsonrpc":"2.0","id":32,"method":"ping"}')
    rest, errors = server.communicate(timeout=PATIENCE)
    assert [json.loads(line)["id"] for line in rest.splitlines()] == [32]
    assert server.returncode == 0
    assert len(errors.splitlines()) == 1, errors
    assert rows(database, "SELECT status FROM transfer") == [("pending",)]


def codes_in(result: dict[str, Any]) -> set[str]:
    words = " ".join(item["text"] for item in result["content"]).replace(".", " ").split()
    return {word for word in words if len(word) == 6 and word.isdigit()}


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM]
)
def test_it_ends_at_once_while_the_host_keeps_the_pipe_open(
    number: signal.Signals, database: Path
) -> None:
    server = subprocess.Popen(
        command("--database", str(database)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(initialize()[0]) + "\n")
    server.stdin.flush()
    assert "banking-server" in server.stdout.readline()
    server.send_signal(number)
    assert server.wait(PATIENCE) == 0
    rest, errors = server.communicate()
    assert rest == ""
    assert errors.splitlines() == [
        "Serving CUST001; --customer or BANKING_CUSTOMER names somebody else."
    ]


def test_a_person_who_starts_it_is_told_what_it_waits_for(database: Path) -> None:
    terminal = Terminal(command("--database", str(database), "--customer", "CUST002"))
    terminal.wait_for("Waiting for MCP messages")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 0
    assert "banking-server demo" in terminal.screen
    assert "CUST001" not in terminal.screen
    assert "Traceback" not in terminal.screen
