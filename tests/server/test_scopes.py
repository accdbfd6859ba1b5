"""A token is good for the tools whose scope it carries; a call refused for that is audited."""

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import MCPError

from banking_server.chaining import IDENTIFIER
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.settings import Settings
from banking_server.server.tokens import Tokens, load_keys

from ..kit.command import PATIENCE
from ..kit.servers import http_client, tool_call
from ..kit.words import FROM_LOCKED, MODES

PREPARE = "prepare_money_transfer"
TRANSFER_TOOLS = (
    PREPARE,
    "confirm_or_cancel_money_transfer",
    "request_manager_approval",
    "record_compliance_report",
    "confirm_in_view",
    "look_at_transfer",
)
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PLACE = {"chainId": "a-chain", "level": 3, "previousTool": "list_accounts"}
"""A call's place in a chain, as its client says."""

VERSIONS = ("2025-11-25", "2026-07-28")


@dataclass
class Bank:
    """A real HTTP server, in a thread of this process."""

    settings: Settings

    @property
    def url(self) -> str:
        return self.settings.resource

    def token(self, *scopes: str, customer: str = "CUST001") -> str:
        tokens = Tokens(load_keys(self.settings).tokens, self.settings.resource)
        return tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(minutes=5))

    def post(
        self,
        body: Any,
        *scopes: str,
        customer: str = "CUST001",
        version: str = VERSIONS[0],
        **more: str,
    ) -> httpx2.Response:
        """Send one message, or whatever bytes it is, with a token of these scopes."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": version,
            "Mcp-Method": "tools/call",
            "Mcp-Name": PREPARE,
            "Authorization": f"Bearer {self.token(*scopes, customer=customer)}",
            **more,
        }
        return httpx2.post(self.url, content=body, headers=headers, timeout=PATIENCE)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.settings.database, timeout=10)) as connection, connection:
            return connection.execute(statement).fetchall()

    @contextmanager
    def events(self) -> Iterator[list[tuple[Any, ...]]]:
        """Give the audit events that the block leaves, when it has ended."""
        left: list[tuple[Any, ...]] = []
        ((last,),) = self.sql("SELECT coalesce(max(event_id), 0) FROM audit_event")
        yield left
        left += self.sql(
            "SELECT customer_id, tool, outcome, chain_id, chain_level, chain_previous_tool "
            f"FROM audit_event WHERE event_id > {last} ORDER BY event_id"
        )


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    listening = socket.create_server(("127.0.0.1", 0))
    chosen = Settings(
        calls_per_second=0,
        database=tmp_path_factory.mktemp("bank") / "bank.db",
        port=listening.getsockname()[1],
    )
    server = uvicorn.Server(uvicorn.Config(http_app(chosen), log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        end = time.monotonic() + PATIENCE
        while not server.started:
            assert thread.is_alive(), "the server ended before it was up"
            assert time.monotonic() < end, "the server did not come up"
            time.sleep(0.02)
        yield Bank(chosen)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def refused(tool: str) -> tuple[Any, ...]:
    """The event of a call that was refused for its scope, and said nothing of a chain."""
    return ("CUST001", tool, "scope_missing", None, None, None)


# --- what a token is good for ---------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tool", TRANSFER_TOOLS)
def test_a_token_for_reading_does_not_transfer(bank: Bank, tool: str, version: str) -> None:
    with bank.events() as events:
        answer = bank.post(tool_call(tool), "bank:read", version=version)
    assert answer.status_code == 403
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32600, "message": "Required scope: bank:transfer"},
    }
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", error_description="Required scope: bank:transfer", '
        'scope="bank:read bank:transfer", resource_metadata="http://127.0.0.1:'
        f'{bank.settings.port}/.well-known/oauth-protected-resource/mcp"'
    )
    assert events == [refused(tool)]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("Host", "evil.example", 421), ("Origin", "http://evil.example", 403)],
)
def test_what_is_not_meant_for_this_server_leaves_no_event(
    bank: Bank, header: str, value: str, status: int
) -> None:
    with bank.events() as events:
        answer = bank.post(tool_call(PREPARE), "bank:read", **{header: value})
    assert answer.status_code == status
    assert "WWW-Authenticate" not in answer.headers
    assert events == []


@pytest.mark.parametrize(
    "message", [LIST_TOOLS, tool_call("list_accounts"), tool_call("request_agent_handoff")]
)
def test_a_token_for_reading_reads(bank: Bank, message: dict[str, Any]) -> None:
    with bank.events() as events:
        assert bank.post(message, "bank:read").status_code == 200
    assert "scope_missing" not in [outcome for _, _, outcome, *_ in events]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_is_told_which_scope_is_missing(bank: Bank, mode: str) -> None:
    with bank.events() as events:
        async with http_client(bank.url, bank.token("bank:read"), mode) as client:
            assert client.protocol_version == VERSIONS[mode == "auto"]
            with pytest.raises(MCPError, match="Required scope: bank:transfer"):
                await client.call_tool(PREPARE, FROM_LOCKED, meta={IDENTIFIER: PLACE})
            assert not (await client.call_tool("list_accounts")).is_error
    assert events == [
        ("CUST001", PREPARE, "scope_missing", "a-chain", 3, "list_accounts"),
        ("CUST001", "list_accounts", "listed", None, None, None),
    ]


@pytest.mark.parametrize("scopes", [("bank:transfer",), ("bank:everything",), ("bank:readx",)])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {}),
        ("ping", {}),
        ("resources/read", {"uri": "banking://accounts"}),
        ("tools/call/", {"name": PREPARE}),
    ],
)
def test_a_token_without_the_scope_for_reading_does_nothing(
    bank: Bank, scopes: tuple[str, ...], method: str, params: dict[str, Any]
) -> None:
    """Only calls are audited."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with bank.events() as events:
        answer = bank.post(message, *scopes)
    assert answer.status_code == 403
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer error="insufficient_scope"')
    assert 'scope="bank:read bank:transfer"' in challenge
    assert events == []


@pytest.mark.parametrize(
    ("tool", "recorded"),
    [
        (PREPARE, PREPARE),
        ("list_accounts", "list_accounts"),
        ("make_rich", "(unknown tool)"),
        ("", "(unknown tool)"),
        ("\ud800", "(unknown tool)"),
        ("(unknown tool)", "(unknown tool)"),
    ],
)
@pytest.mark.parametrize("scope", ["bank:transfer", "bank:everything"])
def test_a_call_without_the_scope_for_reading_is_audited(
    bank: Bank, tool: str, recorded: str, scope: str
) -> None:
    with bank.events() as events:
        answer = bank.post(tool_call(tool), scope, customer="CUST002")
    assert answer.status_code == 403
    challenge = answer.headers["WWW-Authenticate"]
    missing = "bank:transfer" if (tool, scope) == (PREPARE, "bank:everything") else "bank:read"
    assert f'error="insufficient_scope", error_description="Required scope: {missing}"' in challenge
    assert 'scope="bank:read bank:transfer"' in challenge
    assert events == [("CUST002", recorded, "scope_missing", None, None, None)]


# --- however the call is written ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "audited"),
    [
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",'
            b'"params":{"name":"list_accounts","name":"prepare_money_transfer"}}',
            True,
        ),
        (json.dumps([tool_call(PREPARE)]).encode(), False),
        (json.dumps(tool_call(PREPARE)).encode("utf-16"), True),
        (b"\xef\xbb\xbf" + json.dumps(tool_call(PREPARE)).encode(), True),
        (b'{"jsonrpc":"2.0","id":NaN,' + json.dumps(tool_call(PREPARE)).encode()[1:], True),
        (b"[" * 100_000, False),
        (b"\xff\xfe\xfa", False),
        (b"", False),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}).encode(), False),
        (
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}).encode(),
            False,
        ),
    ],
)
def test_no_way_of_writing_a_call_gets_it_past_the_scopes(
    bank: Bank, body: bytes, audited: bool
) -> None:
    with bank.events() as events:
        answer = bank.post(body, "bank:read")
    assert 400 <= answer.status_code < 500 or "error" in answer.json()
    assert events == ([refused(PREPARE)] if audited else [])


METAS: dict[str, Any] = {
    "null": None,
    "text": "meta",
    "number": 1,
    "list": [{IDENTIFIER: PLACE}],
    "place as a text": {IDENTIFIER: "a-chain"},
    "place as a list": {IDENTIFIER: [PLACE]},
    "place null": {IDENTIFIER: None},
    "level as a text": {IDENTIFIER: {**PLACE, "level": "3"}},
    "level zero": {IDENTIFIER: {**PLACE, "level": 0}},
    "chain too long": {IDENTIFIER: {**PLACE, "chainId": "x" * 129}},
    "chain broken": {IDENTIFIER: {**PLACE, "chainId": "\ud800"}},
    "chain a list": {IDENTIFIER: {**PLACE, "chainId": ["a-chain"]}},
    "tool broken": {IDENTIFIER: {**PLACE, "previousTool": "\udfff"}},
}


@pytest.mark.parametrize("meta", METAS.values(), ids=METAS)
def test_what_a_call_says_of_its_chain_changes_nothing_but_the_event(bank: Bank, meta: Any) -> None:
    call = tool_call(PREPARE)
    call["params"]["_meta"] = meta
    with bank.events() as events:
        assert bank.post(call, "bank:read").status_code == 403
    assert events == [refused(PREPARE)]


def test_a_level_that_the_trail_cannot_hold_is_left_out(bank: Bank) -> None:
    call = tool_call(PREPARE)
    call["params"]["_meta"] = {IDENTIFIER: {**PLACE, "level": 10**30}}
    with bank.events() as events:
        assert bank.post(call, "bank:read").status_code == 403
    assert events == [(*refused(PREPARE)[:3], "a-chain", None, "list_accounts")]


def test_a_long_name_of_the_tool_before_is_cut_and_made_safe(bank: Bank) -> None:
    call = tool_call(PREPARE)
    call["params"]["_meta"] = {IDENTIFIER: {**PLACE, "previousTool": "\n\u202e" + "x" * 1000}}
    with bank.events() as events:
        assert bank.post(call, "bank:read").status_code == 403
    ((*_, before),) = events
    assert before.startswith("\\n\\u202exxx")
    assert len(before) == 128


IDS: list[tuple[bytes, Any]] = [
    (b"0", 0),
    (b"-7", -7),
    (b"-1.5", None),
    (b"true", None),
    (b'"\\u00fc"', "\u00fc"),
    (b"null", None),
    (b"NaN", None),
    (b"-Infinity", None),
    (b'"\\ud800"', None),
    (b"[1]", None),
    (b'{"a": 1}', None),
    (b"1" * 4000, int("1" * 4000)),
]


@pytest.mark.parametrize(("sent", "returned"), IDS)
def test_only_an_id_that_is_one_is_given_back(bank: Bank, sent: bytes, returned: Any) -> None:
    body = json.dumps(tool_call(PREPARE)).encode().replace(b'"id": 7', b'"id": ' + sent)
    with bank.events() as events:
        answer = bank.post(body, "bank:read")
    assert (answer.status_code, answer.json()["id"]) == (403, returned)
    assert events == [refused(PREPARE)]


@pytest.mark.parametrize("arguments", [None, 5, "text", [], {"amount": "lots"}])
def test_what_else_is_wrong_with_a_call_is_not_looked_at(bank: Bank, arguments: Any) -> None:
    call = {"method": "tools/call", "params": {"name": PREPARE, "arguments": arguments}}
    with bank.events() as events:
        assert bank.post(call, "bank:read").status_code == 403
    assert events == [refused(PREPARE)]


# --- when it cannot be recorded -------------------------------------------------------------------


@pytest.fixture
def unwritable(bank: Bank) -> Iterator[None]:
    """No event can be written."""
    bank.sql(
        "CREATE TRIGGER full BEFORE INSERT ON audit_event "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    yield
    bank.sql("DROP TRIGGER full")


@pytest.mark.usefixtures("unwritable")
@pytest.mark.parametrize("scope", ["bank:read", "bank:transfer", "bank:everything"])
def test_a_refusal_that_cannot_be_recorded_is_a_failure_of_ours(
    bank: Bank, scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    with bank.events() as events:
        answer = bank.post(tool_call(PREPARE), scope)
    assert answer.status_code == 503
    assert "WWW-Authenticate" not in answer.headers
    assert answer.json()["id"] == 7
    error = answer.json()["error"]
    assert error["code"] == -32603
    incident = error["message"].rstrip(".").split()[-1]
    assert error["message"] == (
        "The bank is temporarily unavailable. Nothing was changed except what you were already "
        f"told. Please try again later; if it persists, quote incident {incident}."
    )
    (line,) = [record for record in caplog.records if incident in record.getMessage()]
    assert "the disk is full" in str(line.exc_info)
    assert events == []


@pytest.mark.usefixtures("unwritable")
def test_what_needs_no_event_is_served_all_the_same(bank: Bank) -> None:
    assert bank.post(LIST_TOOLS, "bank:read").status_code == 200
