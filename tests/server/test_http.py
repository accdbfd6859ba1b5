"""The server over Streamable HTTP: what is let in, what is left behind, and how it ends."""

import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import AsyncMock

import anyio
import httpx2
import pytest
from mcp.server.auth.provider import AccessToken

from banking_server.server.tokens import CustomerTokens

from ..bank.support import sql
from ..kit.bank import TABLES, Customer, code_of, structured
from ..kit.command import PATIENCE
from ..kit.servers import HttpServer, free_port, http_client, http_server, post, request_of
from ..kit.words import HANDOFF, wrong
from .in_memory import LIST_TOOLS, LOOK, URL, bank_in_memory

# --- over a socket --------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_no_token_code_or_personal_detail_is_logged_or_audited(bank: HttpServer) -> None:
    token, memo = bank.token(), "For the surprise party"
    customer = Customer("auto")
    async with http_client(bank.url, token, "auto") as customer.client:
        prepared = await customer.prepare(amount=12.34, memo=memo)
        transfer, code = structured(prepared)["transferId"], code_of(prepared)
        for given in ({"extra": code}, {"confirmationCode": wrong(code)}, {}, {}):
            confirmed = await customer.confirm(transfer, **{"confirmationCode": code, **given})
    assert structured(confirmed)["status"] == "posted"
    post(bank, bank.token("CUST999"), LIST_TOOLS)
    log, database = bank.logged(), bank.settings.database
    for secret in (token, token.rsplit(".", 1)[1], code, memo, "12.34", transfer, "Bearer"):
        assert secret not in log
    trail, stored = [
        str([sql(database, f"SELECT * FROM {table}") for table in tables])
        for tables in (["audit_event"], TABLES)
    ]
    for secret in (code, wrong(code), memo, "Avery"):
        assert not re.search(rf"\b{secret}\b", trail)
        assert not re.search(rf"\b{secret}\b", log)
    assert not re.search(rf"\b{code}\b", stored)


def test_sigterm_ends_it(tmp_path: Path) -> None:
    with http_server(tmp_path) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.logged()


# --- without sessions -----------------------------------------------------------------------------


@pytest.mark.anyio
async def test_where_no_question_can_be_put_a_text_takes_its_place(full: Path) -> None:
    """2025-11-25 without sessions: the client says it can be asked, but there is no way to."""
    customer = Customer("legacy")
    async with bank_in_memory(full, workers=2) as bank:
        transport = httpx2.ASGITransport(bank.app)
        connected = http_client(URL, bank.token(), "legacy", customer.on_question, transport)
        async with connected as customer.client:
            opened = structured(await customer.call(HANDOFF, reason="A question"))
            assert opened["choices"] == ["realtime", "callback"]
            assert code_of(await customer.prepare())
    assert customer.asked == []


# --- what is let in -------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_foreign_host_or_origin_is_refused_without_an_event(full: Path) -> None:
    async with bank_in_memory(full) as bank:
        with bank.events() as events:
            host = await bank.send(LOOK, Host="bank.evil.example")
            origin = await bank.send(LOOK, Origin="http://evil.example")
            listening = await bank.send({}, method="GET")
        assert events == []
    assert (host.status_code, origin.status_code) == (421, 403)
    assert "evil" not in f"{host.headers}{host.text}{origin.headers}{origin.text}"
    assert listening.status_code == 405
    assert {"POST", "DELETE"} <= {*listening.headers["Allow"].split(", ")}


@pytest.mark.anyio
async def test_a_page_of_an_accepted_origin_asks_without_a_token_and_reads_the_answer(
    full: Path,
) -> None:
    asked = "authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-name"
    ask = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": asked}
    mine, other = "http://localhost:6274", "http://evil.example"
    async with bank_in_memory(full) as bank:
        allowed = await bank.send(b"", None, "OPTIONS", Origin=mine, **ask)
        refused = await bank.send(b"", None, "OPTIONS", Origin=other, **ask)
        answer = await bank.send(LIST_TOOLS, Origin=mine)
        locked = await bank.send(LIST_TOOLS, None, Origin=mine)
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Headers"] == asked
    assert "POST" in allowed.headers["Access-Control-Allow-Methods"]
    assert (answer.status_code, locked.status_code) == (200, 401)
    for response in (allowed, answer, locked):
        assert response.headers["Access-Control-Allow-Origin"] == mine
    exposed = locked.headers["Access-Control-Expose-Headers"]
    assert exposed == "Mcp-Session-Id, WWW-Authenticate"
    assert refused.status_code == 400
    assert "Access-Control-Allow-Origin" not in refused.headers


@pytest.mark.anyio
@pytest.mark.parametrize(("path", "status"), [("/mcp", 200), ("/mcp/", 200), ("/health/", 404)])
async def test_with_and_without_a_slash_it_is_the_same_and_nothing_redirects(
    full: Path, path: str, status: int
) -> None:
    async with bank_in_memory(full) as bank:
        body, headers = request_of(LIST_TOOLS, bank.token())
        answer = await bank.http.post(f"http://127.0.0.1:8000{path}", content=body, headers=headers)
    assert answer.status_code == status


NAMES = {
    ("Host", "bank.example"): 200,
    ("Host", "localhost:8000"): 421,
    ("Origin", "https://bank.example"): 200,
    ("Origin", "http://localhost:3000"): 403,
}


@pytest.mark.anyio
async def test_beyond_loopback_only_the_names_in_the_resource_url_are_accepted(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = AccessToken(token="t", client_id="c", scopes=["bank:read"], subject="CUST001")
    monkeypatch.setattr(CustomerTokens, "verify_token", AsyncMock(return_value=token))
    async with bank_in_memory(
        full,
        host="0.0.0.0",
        resource_url="https://bank.example/mcp",
        issuer="https://login.example",
        jwks_url=f"http://127.0.0.1:{free_port()}/jwks",
    ) as bank:
        for name, status in NAMES.items():
            answer = await bank.send(LIST_TOOLS, "any", **dict([name]))
            assert answer.status_code == status, name


# --- beside the requests --------------------------------------------------------------------------


@pytest.mark.anyio
async def test_due_transfers_are_settled_while_it_runs(full: Path) -> None:
    monday = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
    async with bank_in_memory(full, lambda: monday, workers=2) as bank:
        transport = httpx2.ASGITransport(bank.app)
        customer = Customer("auto")
        async with http_client(URL, bank.token(), "auto", None, transport) as customer.client:
            prepared = await customer.prepare(scheduledDate="2026-03-03")
            transfer = structured(prepared)["transferId"]
            agreed = await customer.confirm(transfer, confirmationCode=code_of(prepared))
        assert structured(agreed)["status"] == "scheduled"
    status = f"SELECT status FROM transfer WHERE transfer_id = '{transfer}'"
    postings = f"SELECT count(*) FROM posting WHERE transfer_id = '{transfer}'"

    def tomorrow() -> datetime:
        return monday + timedelta(days=1)

    # Two servers at once, a day later.
    async with bank_in_memory(full, tomorrow) as first, bank_in_memory(full, tomorrow):
        with anyio.fail_after(30):
            while first.sql(status) != [("posted",)]:
                await anyio.sleep(0.02)
        assert first.sql(postings) == [(1,)]
