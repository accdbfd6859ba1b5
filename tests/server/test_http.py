"""The real server over Streamable HTTP: both eras, several processes, and who is let in."""

import itertools
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from mcp import MCPError

from banking_server.bank.audit import Call
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import (
    Prepared,
    confirm_transfer,
    prepare_transfer,
)
from banking_server.chaining import call_tool_with_chaining
from banking_server.messages.reading import MAX_BYTES
from banking_server.server.build import open_bank
from banking_server.server.http import http_app
from banking_server.server.settings import load_settings
from banking_server.server.tokens import load_keys

from ..bank.records import find_transfer
from ..kit.bank import Customer, code_of, structured
from ..kit.command import PATIENCE, run
from ..kit.servers import (
    Alternating,
    Chooser,
    HttpServer,
    free_port,
    headers_of,
    http_client,
    http_server,
    post,
    tool_call,
)
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, MODES, TO_AN_AGENT, TO_SAVINGS

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


# --- the flow -------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_locked_account_hands_itself_off(bank: HttpServer) -> None:
    customer = Chooser("realtime")
    token = bank.token("CUST001")
    async with http_client(bank.url, token, "auto", customer) as client:
        chain = await call_tool_with_chaining(client, "prepare_money_transfer", FROM_LOCKED)
    assert chain.outcome == "completed"
    locked, handoff = chain.steps
    assert locked.result.content[0].model_dump()["text"] == LOCKED_TEXT
    assert (locked.result.meta or {})["nextTool"] == TO_AN_AGENT
    assert len(customer.asked) == 1
    assert (handoff.result.structured_content or {})["choice"] == "realtime"


@pytest.mark.anyio
async def test_where_no_question_can_be_put_a_text_takes_its_place(bank: HttpServer) -> None:
    """2025-11-25, several processes: the client says it can be asked, but there is no way to."""
    customer = Customer("legacy")
    connected = http_client(bank.url, bank.token("CUST002"), "legacy", customer.on_question)
    async with connected as client:
        opened = await client.call_tool("request_agent_handoff", {"reason": "A question"})
        handoff = opened.structured_content or {}
        assert handoff["choices"] == ["realtime", "callback"]
        chosen = await client.call_tool(
            "process_agent_handoff_choice",
            {"handoffId": handoff["handoffId"], "choice": "callback"},
        )
        assert (chosen.structured_content or {})["choice"] == "callback"
        customer.client = client
        prepared = await customer.prepare(
            fromAccountId="acc_savings_002", toAccountId="acc_checking_002"
        )
        transfer = structured(prepared)["transferId"]
        missing = await customer.confirm(transfer)
        assert structured(missing)["status"] == "confirmation_needed"
        posted = await customer.confirm(transfer, confirmationCode=code_of(prepared))
    assert structured(posted)["status"] == "posted"
    assert customer.asked == []


def test_several_processes_have_no_sessions(bank: HttpServer) -> None:
    client = {"name": "a client", "version": "1"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    initialize = {"id": 1, "method": "initialize", "params": {**asked, "clientInfo": client}}
    opened = post(bank, bank.token(), {"jsonrpc": "2.0", **initialize})
    assert (opened.status_code, "Mcp-Session-Id" in opened.headers) == (200, False)


@pytest.fixture(scope="module")
def second(bank: HttpServer) -> Iterator[HttpServer]:
    """Another server process on the same database, under the same URL."""
    with http_server(
        bank.settings.database.parent, BANKING_RESOURCE_URL=bank.settings.resource
    ) as server:
        yield server


@pytest.mark.anyio
async def test_a_question_is_answered_through_another_process(
    bank: HttpServer, second: HttpServer
) -> None:
    ports = Alternating(bank.port, second.port)
    customer = Chooser("callback")
    token = bank.token("CUST003")
    async with http_client(bank.url, token, "2026-07-28", customer, ports) as client:
        for attempt in range(3):
            result = await client.call_tool("request_agent_handoff", {"reason": f"Try {attempt}"})
            assert not result.is_error, result
            assert (result.structured_content or {})["choice"] == "callback"
    assert len(customer.asked) == 3
    # Two rounds a call: the question came from one process, the answer went to the other.
    assert len(ports.calls) == 6
    assert all(ports.calls[i] != ports.calls[i + 1] for i in (0, 2, 4))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_every_process_answers_every_client(bank: HttpServer, mode: str) -> None:
    async def look() -> None:
        async with http_client(bank.url, bank.token("CUST003"), mode) as client:
            assert not (await client.call_tool("list_accounts")).is_error

    async with anyio.create_task_group() as clients:
        for _ in range(6):
            clients.start_soon(look)


@pytest.mark.anyio
async def test_outside_branch_hours_the_chain_is_three_calls_long(bank: HttpServer) -> None:
    arguments = {**TO_SAVINGS, "fromAccountId": "acc_savings_001", "amount": 15000}
    arguments["toAccountId"] = "acc_everyday_001"
    customer = Chooser("callback")
    async with http_client(bank.url, bank.token(), "auto", customer) as client:
        chain = await call_tool_with_chaining(client, "prepare_money_transfer", arguments)
    assert chain.outcome == "completed"
    assert [step.tool for step in chain.steps] == [
        "prepare_money_transfer",
        "request_manager_approval",
        "request_agent_handoff",
    ]


# --- who is calling -------------------------------------------------------------------------------


def signed(bank: HttpServer, key: bytes | None = None, **changes: Any) -> str:
    claims = {
        "iss": bank.tokens.issuer,
        "sub": "CUST001",
        "aud": bank.settings.resource,
        "exp": datetime.now(UTC) + timedelta(minutes=5),
        "scope": "bank:read bank:transfer",
        **changes,
    }
    return jwt.encode(claims, bank.tokens.key if key is None else key, "HS256")


def without_signature(bank: HttpServer) -> str:
    claims = jwt.decode(signed(bank), options={"verify_signature": False})
    return jwt.encode(claims, None, "none")


BAD_TOKENS: dict[str, Any] = {
    "none": lambda bank: None,
    "garbage": lambda bank: "garbage",
    "expired": lambda bank: signed(bank, exp=datetime(2020, 1, 1, tzinfo=UTC)),
    "another resource": lambda bank: signed(bank, aud="http://127.0.0.1:1/mcp"),
    "another issuer": lambda bank: signed(bank, iss="http://127.0.0.1:1"),
    "another key": lambda bank: signed(bank, key=b"another key that is long enough "),
    "no signature": without_signature,
    "an unknown customer": lambda bank: signed(bank, sub="CUST999"),
    "an unknown customer with a strange name": lambda bank: signed(bank, sub="'; --\u0000"),
    "nobody": lambda bank: signed(bank, sub=""),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_without_a_good_token_nobody_is_let_in(bank: HttpServer, kind: str) -> None:
    assert post(bank, signed(bank), LIST_TOOLS).status_code == 200
    refused = post(bank, BAD_TOKENS[kind](bank), tool_call("list_accounts"))
    assert refused.status_code == 401
    metadata = f"http://127.0.0.1:{bank.port}/.well-known/oauth-protected-resource/mcp"
    error = 'error="invalid_token", error_description="Authentication required", '
    assert refused.headers["WWW-Authenticate"] == (
        # Whoever sent no token made no error (RFC 6750, 3.1).
        f"Bearer {'' if kind == 'none' else error}"
        f'scope="bank:read bank:transfer", resource_metadata="{metadata}"'
    )
    # Not a word about what is wrong with it, or about who the customers are.
    assert refused.content == post(bank, "garbage", LIST_TOOLS).content


def test_the_token_command_lets_one_in_on_whatever_port(bank: HttpServer) -> None:
    minted = run(
        "token", "--customer", "CUST001", "--database", str(bank.settings.database)
    ).stdout.strip()
    answer = post(bank, minted, tool_call("list_accounts"))
    assert answer.status_code == 200
    assert "acc_checking_001" in answer.text


def test_the_metadata_names_no_authorization_server_as_there_is_none(bank: HttpServer) -> None:
    url = f"http://127.0.0.1:{bank.port}/.well-known/oauth-protected-resource/mcp"
    assert httpx2.get(url).json() == {
        "resource": bank.settings.resource,
        "scopes_supported": ["bank:read", "bank:transfer"],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize(
    ("headers", "query", "status", "error"),
    [
        ([], "", 401, None),
        ([("Authorization", "Basic Y3VzdG9tZXI6cGFzc3dvcmQ=")], "", 401, None),
        ([("Authorization", "Bearer")], "", 401, "invalid_token"),
        # Only in the query, where it is not looked for.
        ([], "?access_token={token}", 401, None),
        ([("Authorization", "Bearer {token}")], "?access_token={token}", 400, "invalid_request"),
        ([("Authorization", "Bearer {token}")] * 2, "", 400, "invalid_request"),
        ([("authorization", "bearer {token}")], "?q=access_token", 200, None),
    ],
)
def test_a_token_is_sent_once_and_in_the_header(
    bank: HttpServer, headers: list[tuple[str, str]], query: str, status: int, error: str | None
) -> None:
    token = bank.token()
    sent = [(name, value.format(token=token)) for name, value in headers]
    sent += [(name, value) for name, value in headers_of(None).items()]
    answer = httpx2.post(bank.url + query.format(token=token), headers=sent, json=LIST_TOOLS)
    assert answer.status_code == status
    if status != 200:
        challenge = answer.headers["WWW-Authenticate"]
        assert ("error=" in challenge) == (error is not None)
        assert f'error="{error}"' in challenge or error is None
    assert token not in answer.text + str(answer.headers)


def test_a_customer_sees_nothing_of_another(bank: HttpServer) -> None:
    def ask(account: str) -> str:
        call = tool_call("get_account_balance", {"accountId": account})
        return post(bank, bank.token("CUST002"), call).text.replace(account, "ID")

    assert ask("acc_savings_001") == ask("acc_nothing_001")


# --- what else is let in --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "bank.evil.example", 421),
        ("Host", "127.0.0.1.evil.example:80", 421),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://127.0.0.1.evil.example", 403),
        ("Origin", "http://localhost:3000", 200),
        ("Host", "localhost:1234", 200),
        ("Host", "LOCALHOST:1234", 200),
        *[("Host", f"localhost:{port}", 421) for port in ("*", "1, evil", "1@evil", "", "123456")],
        ("Origin", "http://localhost:3000, http://evil.example", 403),
    ],
)
def test_names_of_elsewhere_are_refused(
    bank: HttpServer, header: str, value: str, status: int
) -> None:
    assert post(bank, bank.token(), LIST_TOOLS, **{header: value}).status_code == status


def test_each_origin_that_is_sent_is_looked_at(bank: HttpServer) -> None:
    for other, status in (("http://127.0.0.1:1", 401), ("http://evil.example", 403)):
        sent = [("Origin", "http://localhost:3000"), ("Origin", other)]
        assert httpx2.post(bank.url, headers=sent).status_code == status


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "//", "/.well-known/"])
def test_a_name_of_elsewhere_is_repeated_nowhere(bank: HttpServer, path: str) -> None:
    url = f"http://127.0.0.1:{bank.port}{path}"
    for sent in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}):
        answer = httpx2.post(url, headers=sent)
        assert "evil" not in f"{answer.headers}{answer.text}"
        assert answer.status_code == 421 or "Host" not in sent


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "bank.example", 401),
        ("Host", "bank.inside:8000", 401),
        ("Host", "127.0.0.1:8000", 421),
        ("Host", "localhost", 421),
        ("Origin", "https://bank.example", 401),
        ("Origin", "https://app.example", 401),
        ("Origin", "http://localhost:3000", 403),
    ],
)
async def test_beyond_loopback_only_the_names_it_was_given_are_its_own(
    database: Path, header: str, value: str, status: int
) -> None:
    settings = load_settings(
        database=database,
        host="0.0.0.0",
        resource_url="https://bank.example/mcp",
        allowed_hosts="bank.inside:*",
        allowed_origins="https://app.example",
        issuer="https://login.example",
        jwks_url=f"http://127.0.0.1:{free_port()}/jwks",
    )
    app = http_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client,
    ):
        sent = {"Host": "bank.example", header: value}
        answer = await client.post("https://bank.example/mcp", json=LIST_TOOLS, headers=sent)
    assert answer.status_code == status, answer.text


def test_the_body_is_bounded(bank: HttpServer) -> None:
    call = tool_call("prepare_money_transfer", {"memo": "m" * MAX_BYTES})
    assert post(bank, bank.token(), call).status_code == 413

    def chunks() -> Iterator[bytes]:
        yield from itertools.repeat(b"x" * 65536, 2 * MAX_BYTES // 65536)

    headers = {"Authorization": f"Bearer {bank.token()}", "Content-Type": "application/json"}
    # It may also hang up on who goes on sending.
    with httpx2.Client(headers=headers) as client, suppress(httpx2.TransportError):
        assert client.post(bank.url, content=chunks()).status_code == 413
    assert post(bank, bank.token(), LIST_TOOLS).status_code == 200


BAD_BODIES: list[tuple[bytes, int, int, Any]] = [
    # What is sent in place of a call, or as its id or amount; status, code and id of the answer.
    (b"garbage", 400, -32700, None),
    (b"[]", 400, -32600, None),
    (b'{"jsonrpc":"2.0","method":"x","params":5}', 400, -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"x","params":5}', 400, -32600, 7),
    *[(b"id " + sent, 400, -32700, None) for sent in (b"NaN", b"-Infinity")],
    *[(b"id " + sent, 400, -32600, None) for sent in (b'"\\ud800"', b"1.5", b"null", b"true")],
    (b"id 1e999", 400, -32602, None),
    *[(b"amount " + sent, 400, -32700, 7) for sent in (b"NaN", b"Infinity", b'"\xff"')],
    *[(b"amount " + sent, 400, -32602, 7) for sent in (b"0.010000000000000001", b"1e999")],
    (b"amount " + b"1" * 5000, 400, -32602, 7),
    (b'amount "\\ud800"', 400, -32600, 7),
    (b"amount " + b"[" * 10_000 + b"]" * 10_000, 400, -32600, 7),
]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("sent", "status", "code", "request_id"), BAD_BODIES, ids=lambda value: str(value)[:30]
)
def test_what_is_no_message_is_refused(
    bank: HttpServer, version: str, sent: bytes, status: int, code: int, request_id: Any
) -> None:
    what, _, instead = sent.partition(b" ")
    if what in (b"id", b"amount"):
        call = tool_call("prepare_money_transfer", {**TO_SAVINGS, "amount": 5})
        there = b'"id": 7' if what == b"id" else b'"amount": 5'
        whole = json.dumps(call).encode()
        sent = whole.replace(there, b'"%s": %s' % (what, instead))
        assert sent != whole
    answer = post(bank, bank.token(), sent, MCP_Protocol_Version=version)
    assert (answer.status_code, answer.json()["id"]) == (status, request_id)
    assert answer.json()["error"]["code"] == code


AMOUNTS: dict[str, int | None] = {
    **{"25": 2500, "25.5": 2550, "25.50": 2550, "25.500": 2550, "1e1": 1000, "2550E-2": 2550},
    **{"0.01": 1, "0.010": 1, "1.10": 110, "0.29": 29, "1.15": 115, "19.99": 1999, "100.07": 10007},
    **{"4.35": 435, "1.005e3": 100_500, "0.10000000000000000000": 10, "1e0": 100},
    **dict.fromkeys(
        ("0.010000000000000001", "25.500000000000000000001", "0.009999999999999999999")
    ),
    **dict.fromkeys(("0.0099999999999999999", "1e-2000", "1e999", "-1e999", "NaN", "Infinity")),
    **dict.fromkeys(("0.001", "19.999", "0", "-0.0", "-1", "1e-3", "1e15", "1" * 400, "1" * 5000)),
    **dict.fromkeys(
        ("true", "null", '"25"', "[25]", '{"amount": 25}', "01", "+1", ".5", "1.", "0x1")
    ),
}
"""Amounts as they are written, and what they are in minor units; None if they are refused."""


def test_an_amount_is_what_was_written(bank: HttpServer) -> None:
    call = json.dumps(tool_call("prepare_money_transfer", {**TO_SAVINGS, "amount": 5})).encode()
    for written, minor in AMOUNTS.items():
        sent = call.replace(b'"amount": 5', f'"amount": {written}'.encode())
        answer = post(bank, bank.token(), sent)
        assert answer.status_code in (200, 400), written
        said = answer.json(parse_float=Decimal)
        if minor is None:
            assert "error" in said or said["result"]["isError"], written
        else:
            assert said["result"]["structuredContent"]["amount"] * 100 == minor, written


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a client", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}

NO_YES: list[Any] = [
    *[None, [], {}, 5, "yes", True],
    {"another": {"action": "accept", "content": {"agreed": True}}},
    *[{"KEY": said} for said in (None, True, "accept", [], {}, [{"action": "accept"}])],
    *[
        {"KEY": {"action": action, "content": {"agreed": True}}}
        for action in ("decline", "cancel", "ACCEPT", "", None, True, ["accept"])
    ],
    {"KEY": {"content": {"agreed": True}}},
    *[
        {"KEY": {"action": "accept", "content": content}}
        for content in (
            *(None, True, "true", [], [True], {}, {"agreed": None}, {"agreed": False}),
            *({"agreed": like} for like in ("yes", "true", "on", 1, 1.0, [True], {"agreed": True})),
            *({"Agreed": True}, {"agreed": True, "more": 1}),
        )
    ],
    {"KEY": {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}},
    {"KEY": {"roots": []}},
]
"""Responses to the question whether to confirm, none of which is a yes; KEY is the question's."""


def test_nothing_but_a_yes_is_one(bank: HttpServer) -> None:
    def call(name: str, arguments: dict[str, Any], **more: Any) -> Any:
        message = tool_call(name, arguments)
        message["params"] |= {"_meta": MODERN, **more}
        headers = {"Mcp_Method": "tools/call", "Mcp_Name": name}
        answer = post(bank, bank.token(), message, MCP_Protocol_Version="2026-07-28", **headers)
        assert answer.status_code in (200, 400), (more, answer.text)
        assert answer.json()["id"] == 7
        return answer.json().get("result", {})

    def confirm(**more: Any) -> Any:
        return call("confirm_or_cancel_money_transfer", confirming, **more)

    prepared = call("prepare_money_transfer", {**TO_SAVINGS, "amount": 5})
    confirming = {
        "transferId": prepared["structuredContent"]["transferId"],
        "action": "confirm",
    }
    for no_yes in NO_YES:
        asked = confirm()
        (key,) = asked["inputRequests"]
        text = json.dumps(no_yes).replace("KEY", key)
        result = confirm(inputResponses=json.loads(text), requestState=asked["requestState"])
        assert result.get("structuredContent", {}).get("status") != "posted", no_yes
    asked = confirm()
    yes = {key: {"action": "accept", "content": {"agreed": True}}}
    for more in ({key: {**yes[key], "zz": 1}}, {**yes, "another": yes[key]}):
        result = confirm(inputResponses=more, requestState=asked["requestState"])
        assert result["structuredContent"]["status"] == "invalid_answer", more
    yes[key]["_meta"] = {}
    result = confirm(inputResponses=yes, requestState=asked["requestState"])
    assert result["structuredContent"]["status"] == "posted"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_there_are_no_prompts(bank: HttpServer, mode: str) -> None:
    async with http_client(bank.url, bank.token("CUST003"), mode) as client:
        for name in ("x", "", "\n\u202e" * 100):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name)
            assert refused.value.error.code == -32602
            assert len(refused.value.error.message) < 100
            assert refused.value.error.message.isprintable()


def test_a_megabyte_in_an_argument_is_refused_by_name(bank: HttpServer) -> None:
    arguments = {**TO_SAVINGS, "amount": 5, "memo": "m" * 1_000_000}
    answer = post(bank, bank.token(), tool_call("prepare_money_transfer", arguments))
    result = answer.json()["result"]
    assert result["isError"]
    assert result["structuredContent"]["field"] == "memo"
    assert len(answer.content) < 2000


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_without_sessions_there_is_only_post(bank: HttpServer, method: str) -> None:
    headers = {"Authorization": f"Bearer {bank.token()}", "Accept": "text/event-stream"}
    answer = httpx2.request(method, bank.url, headers=headers)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path", ["/", "/mcp/", "/mcp/mcp", "/.well-known/oauth-protected-resource"]
)
def test_there_is_nothing_at_other_paths(bank: HttpServer, path: str) -> None:
    headers = {"Authorization": f"Bearer {bank.token()}"}
    answer = httpx2.post(f"http://127.0.0.1:{bank.port}{path}", headers=headers, json=LIST_TOOLS)
    assert answer.status_code in (307, 404, 405)


# --- what is left behind --------------------------------------------------------------------------


def test_the_log_holds_no_token_code_or_personal_detail(bank: HttpServer) -> None:
    token, memo = bank.token(), "For the surprise party"
    arguments = {**TO_SAVINGS, "amount": 12.34, "memo": memo}
    prepared = post(bank, token, tool_call("prepare_money_transfer", arguments)).json()["result"]
    transfer = prepared["structuredContent"]["transferId"]
    words = " ".join(item["text"] for item in prepared["content"]).replace(".", " ").split()
    (code,) = {word for word in words if len(word) == 6 and word.isdigit()}
    for given in ("000000" if code != "000000" else "111111", code):
        arguments = {"transferId": transfer, "action": "confirm", "confirmationCode": given}
        post(bank, token, tool_call("confirm_or_cancel_money_transfer", arguments))
    post(bank, signed(bank, sub="CUST999"), LIST_TOOLS)
    log = bank.logged()
    for secret in (token, token.rsplit(".", 1)[1], code, memo, "12.34", transfer, "Bearer"):
        assert secret not in log
    assert "Traceback" not in log


def test_files_are_their_owners_only(bank: HttpServer) -> None:
    folder = bank.settings.database.parent
    for path in (bank.settings.database, bank.settings.secret_path):
        assert path.stat().st_mode & 0o077 == 0
    assert {path.suffix for path in folder.iterdir()} <= {
        ".db",
        ".db-wal",
        ".db-shm",
        ".lock",
        ".secret",
        ".log",
    }


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    with http_server(tmp_path) as server:
        assert post(server, server.token(), tool_call("list_accounts")).status_code == 200
        assert server.interrupt() == 0
        assert server.logged().splitlines() == [
            f"Serving MCP at {server.url} (bound to 127.0.0.1). Ctrl-C ends it."
        ]


def test_workers_end_with_their_supervisor_however_it_ends(tmp_path: Path) -> None:
    with http_server(tmp_path, "--workers", "2") as server:
        server.process.kill()
        server.process.wait(PATIENCE)
        # Nobody is left who has the port.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    probe.bind(("127.0.0.1", server.port))
                    break
                except OSError:
                    assert time.monotonic() < end
                    time.sleep(0.05)
        assert len(server.logged().splitlines()) == 1


@pytest.mark.anyio
async def test_due_transfers_are_settled_while_it_runs(database: Path) -> None:
    settings = load_settings(database=database)
    monday = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
    async with open_bank(settings, monday, load_keys(settings), create=True) as bank:
        transfer = await schedule(bank, monday)
        assert await status(bank, transfer) == "scheduled"
        # Two servers at once, a day later.
        first = http_app(settings, clock=lambda: monday + timedelta(days=1))
        second = http_app(settings, clock=lambda: monday + timedelta(days=1))
        async with first.router.lifespan_context(first), second.router.lifespan_context(second):
            with anyio.fail_after(30):
                while await status(bank, transfer) != "posted":
                    await anyio.sleep(0.02)
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT count(*) FROM posting WHERE transfer_id = ?"
        assert connection.execute(query, (transfer,)).fetchone() == (1,)


async def schedule(bank: Bank, now: datetime) -> str:
    call = Call(customer_id="CUST001", tool="prepare_money_transfer", at=now)
    prepared = await prepare_transfer(
        bank,
        call,
        from_account_id="acc_everyday_001",
        to_account_id="acc_savings_001",
        amount=Decimal("10.00"),
        scheduled_date="2026-03-03",
        memo=None,
    )
    assert isinstance(prepared, Prepared)
    transfer = prepared.transfer.transfer_id
    await confirm_transfer(bank, call, transfer, customer_agreed=True, code=None)
    return transfer


async def status(bank: Bank, transfer: str) -> str:
    view = await find_transfer(bank, "CUST001", transfer, datetime.now(UTC))
    assert view is not None
    return view.status
