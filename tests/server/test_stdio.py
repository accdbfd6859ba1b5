"""The real server as a subprocess over stdio, as a host runs it."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from ..bank.support import sql
from ..kit.bank import Customer
from ..kit.command import PATIENCE, command
from ..kit.servers import stdio_client
from ..kit.stdio import lines_of
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, LOCKED_REASON, LOCKED_TEXT, TO_AN_AGENT, TO_SAVINGS


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.ci)])
async def test_a_locked_account_hands_itself_off(mode: str, full: Path) -> None:
    customer = Customer(mode)
    customer.answers = [{"picked": "callback"}]
    async with stdio_client(full, mode, customer.on_question) as customer.client:
        chain = await customer.chain("prepare_money_transfer", **FROM_LOCKED)
    assert chain.outcome == "completed"
    assert len(customer.asked) == 1
    locked, handoff = chain.steps
    assert locked.result["content"][0]["text"] == LOCKED_TEXT
    assert locked.is_error is False
    assert locked.result["_meta"]["nextTool"] == TO_AN_AGENT
    assert (handoff.tool, handoff.arguments) == (TO_AN_AGENT["tool"], TO_AN_AGENT["arguments"])
    assert handoff.result["structuredContent"]["choice"] == "callback"

    assert sql(full, "SELECT customer_id, reason, choice, status FROM handoff") == [
        ("CUST001", LOCKED_REASON, "callback", "open")
    ]
    events = "SELECT tool, chain_id, chain_level, chain_previous_tool FROM audit_event"
    assert sql(full, f"{events} ORDER BY event_id") == [
        ("prepare_money_transfer", chain.chain_id, 1, None),
        ("request_agent_handoff", chain.chain_id, 2, "prepare_money_transfer"),
    ]


def serving(database: Path, *arguments: str, **variables: str) -> Any:
    return lines_of(command("--database", str(database), *arguments), **variables)


CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"list_accounts",%s}}'

ODD_LINES: list[tuple[str | bytes, tuple[Any, int]]] = [
    # What is sent, and the id and the code of the answer.
    (b"\xff\xfe", (None, -32700)),
    ("{", (None, -32700)),
    ('[{"jsonrpc":"2.0","id":10,"method":"ping"}]', (None, -32600)),
    ('{"jsonrpc":"2.0","id":"h\\ud83d","method":"ping"}', ("h\ufffd", -32600)),
    ('{"jsonrpc":"2.0","id":11,"method":"tools/list","params":5}', (11, -32600)),
    (CALL % ("12", f'"arguments":{{"a":{"[" * 10_000}{"]" * 10_000}}}'), (None, -32700)),
    ('{"jsonrpc":"2.0","id":20,"method":"no/such"}', (20, -32601)),
    (CALL % ("21", f'"arguments":{{"a":"{"x" * 2**22}"}}'), (21, 0)),
]


def test_whatever_is_sent_is_answered(full: Path) -> None:
    """One server, and after all of it the customer's calls go on, until its database is lost."""
    with serving(full, BANKING_LOG_LEVEL="DEBUG") as server:
        server.open()
        for line, expected in ODD_LINES:
            server.send(line)
            assert server.answer() == expected, line[:80]

        # A question that is answered with what is no answer is still open.
        prepared = server.call(30, "prepare_money_transfer", {**TO_SAVINGS, "amount": 5})["result"]
        transfer = prepared["structuredContent"]["transferId"]
        assert not re.search(r"\b\d{6}\b", str(prepared["content"])), "who is asked needs none"
        confirm = {"transferId": transfer, "action": "confirm"}
        question = server.call(31, "confirm_or_cancel_money_transfer", confirm)
        assert question["method"] == "elicitation/create"
        server.send({"id": question["id"], "result": True})
        assert server.answer() == (None, -32600)
        server.send({"id": question["id"], "result": {"action": "decline"}})
        assert server.said()["result"]["structuredContent"]["status"] == "declined"
        assert sql(full, "SELECT status FROM transfer") == [("pending",)]

        # Without its database it says so in one line.
        full.unlink()
        refused = server.call(33, "list_accounts", {})["result"]
        assert refused["isError"]
        assert "quote incident" in str(refused["content"])

        # The last line needs no end, and the end of the input ends the server.
        server.stdin.write(b'{"jsonrpc":"2.0","id":32,"method":"ping"}')
        rest, errors = server.end()
    assert [message["id"] for message in rest] == [32]
    assert "Serving customer CUST001 (" in errors
    assert "Traceback" not in errors
    (line,) = [line for line in errors.splitlines() if "Incident" in line]
    assert f"The file {full} of the database was deleted or replaced" in line
    assert "banking-server database restore" in line


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}])
def test_at_the_end_of_the_input_all_that_was_asked_is_answered(
    full: Path, capabilities: dict[str, Any]
) -> None:
    with serving(full) as server:
        server.open(capabilities)
        prepare: dict[str, Any] = {"name": "prepare_money_transfer", "arguments": {**TO_SAVINGS}}
        ask = {"name": "request_agent_handoff", "arguments": {"reason": "Help"}}
        for number in range(20):
            prepare["arguments"]["amount"] = number + 1
            server.send({"id": number, "method": "tools/call", "params": prepare})
        server.send({"id": "asks", "method": "tools/call", "params": ask})
        rest, _ = server.end()
    answers = {each["id"]: each for each in rest if "method" not in each}
    assert len(answers) == len([each for each in rest if "method" not in each]) == 21
    statuses = [answers[number]["result"]["structuredContent"]["status"] for number in range(20)]
    assert sql(full, "SELECT count(*) FROM transfer") == [(statuses.count("pending"),)]
    if capabilities:
        assert "nobody can answer" in answers["asks"]["error"]["message"]
    else:
        assert answers["asks"]["result"]["structuredContent"]["choices"]


@pytest.mark.parametrize(
    ("arguments", "told"), [((), "the bank's desk"), (("--codes", "result"), "confirmation code")]
)
def test_where_nobody_can_be_asked_the_desk_has_the_code(
    full: Path, arguments: tuple[str, ...], told: str
) -> None:
    with serving(full, *arguments) as server:
        server.open({})
        prepared = server.call(2, "prepare_money_transfer", {**TO_SAVINGS, "amount": 5})["result"]
        # It ends at once, though the host keeps the pipe open.
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        assert server.stdout.read() == b""
        assert server.process.stderr is not None
        first, *more = server.process.stderr.read().decode().splitlines()
    assert told in str(prepared["content"])
    assert bool(re.search(r"\b\d{6}\b", str(prepared))) is bool(arguments)
    # That a model can then confirm is told to the operator, and not to the customer.
    assert first == "Serving customer CUST001 (choose another with --customer)."
    assert ["the model can confirm" in line for line in more] == [True] * bool(arguments)
    assert "model" not in str(prepared["content"])


@pytest.mark.ci
def test_a_person_who_starts_it_is_told_what_it_waits_for(database: Path) -> None:
    with Terminal(command("--database", str(database), "--customer", "CUST002")) as terminal:
        terminal.wait_for("Waiting for MCP messages")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.finish() == 0
    assert "banking-server demo" in terminal.screen
    assert "CUST001" not in terminal.screen
    assert "Traceback" not in terminal.screen
