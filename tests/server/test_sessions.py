"""Sessions of 2025-11-25 over HTTP: who is asked, whose they are, and how many there may be."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from banking_server.chaining import IDENTIFIER, SETTINGS, call_tool_with_chaining
from banking_server.server import sessions
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.settings import Settings
from banking_server.server.tokens import Tokens, load_keys

from ..conformance.node_project import MODULES, missing, node
from ..kit.bank import Customer, code_of, structured
from ..kit.servers import Chooser, HttpServer, headers_of, http_client, http_server, tool_call
from ..kit.views import SHOWS_VIEWS, for_view
from ..kit.words import FROM_LOCKED, HANDOFF, MODES

YES = {"agreed": True}
FAR = "http://127.0.0.1:8000/mcp"


def initialize(capabilities: dict[str, Any]) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "a client", "version": "1"},
        },
    }


ASK_ME = initialize({"elicitation": {}})
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LOOK = tool_call("list_accounts")
ASK = tool_call(HANDOFF, {"reason": "A question"})


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server of one process, as it is by default."""
    with http_server(tmp_path_factory.mktemp("alone"), BANKING_CALLS_PER_SECOND="0") as server:
        yield server
        assert server.interrupt() == 0
        assert "Traceback" not in server.logged()


class Talk:
    """One client's requests, written by hand: its token, and its session once it has one."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: Callable[[], str]) -> None:
        self.http = http
        self.url = url
        self.token = token
        self.session: str | None = None

    def headers(self, **more: str) -> dict[str, str]:
        session = {} if self.session is None else {"Mcp-Session-Id": self.session}
        return {**headers_of(self.token()), **session, **more}

    async def send(
        self, message: dict[str, Any], method: str = "POST", **headers: str
    ) -> httpx2.Response:
        sent = self.headers(**headers)
        return await self.http.request(method, self.url, json=message, headers=sent)

    async def open(self) -> str:
        """Open a session, as a client that can be asked something does."""
        opened = await self.send(ASK_ME)
        assert opened.status_code == 200, opened.text
        self.session = opened.headers["Mcp-Session-Id"]
        assert (await self.send(READY)).status_code == 202
        return self.session

    async def works(self) -> bool:
        """Whether the session is there."""
        looked = await self.send(LOOK)
        assert looked.status_code in (200, 404), looked.text
        return looked.status_code == 200


@asynccontextmanager
async def talking(
    server: HttpServer, customer: str = "CUST001", *scopes: str
) -> AsyncIterator[Talk]:
    async with httpx2.AsyncClient(timeout=30) as http:
        yield Talk(http, server.url, lambda: server.token(customer, *scopes))


class Within:
    """The application without a socket."""

    def __init__(self, http: httpx2.AsyncClient, tokens: Tokens) -> None:
        self.http = http
        self.tokens = tokens

    def talk(self, customer: str = "CUST001") -> Talk:
        scopes = ("bank:read", "bank:transfer")
        token = self.tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(minutes=5))
        return Talk(self.http, FAR, lambda: token)


@asynccontextmanager
async def within(
    database: Path, idle: float = 1800, calls_per_second: int = 0, **options: Any
) -> AsyncIterator[Within]:
    settings = Settings(
        database=database, resource_url=FAR, calls_per_second=calls_per_second, **options
    )
    # A fraction of a second is for tests only.
    app = http_app(settings.model_copy(update={"session_idle": idle}))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
    ):
        yield Within(http, Tokens(load_keys(settings).tokens, FAR))


# --- being asked ----------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_who_can_be_asked_is_asked_and_no_code_stands_in(
    alone: HttpServer, mode: str
) -> None:
    customer = Customer(mode)
    connected = http_client(alone.url, alone.token(), mode, customer.on_question)
    async with connected as customer.client:
        prepared = await customer.prepare(amount=30 + len(mode))
        transfer, code = structured(prepared)["transferId"], code_of(prepared)
        for no in ("decline", "cancel", {"agreed": False}):
            customer.answers = [no]
            refused = await customer.confirm(transfer, confirmationCode=code)
            assert structured(refused)["status"] == "declined"
        customer.answers = [YES]
        confirmed = await customer.confirm(transfer, confirmationCode=code)
        assert structured(confirmed)["status"] == "posted"
    assert len(customer.asked) == 4


@pytest.mark.anyio
async def test_a_chain_asks_its_question(alone: HttpServer) -> None:
    customer = Chooser("callback")
    async with http_client(alone.url, alone.token(), "legacy", customer) as client:
        chain = await call_tool_with_chaining(client, "prepare_money_transfer", FROM_LOCKED)
    assert chain.outcome == "completed"
    assert len(customer.asked) == 1
    assert (chain.steps[-1].result.structured_content or {})["choice"] == "callback"


@pytest.mark.anyio
async def test_two_customers_are_asked_at_once_each_their_own(alone: HttpServer) -> None:
    """Each answers when both have been asked."""
    both = anyio.Event()
    asked: list[str] = []

    async def ask(customer: str, choice: str) -> None:
        async def answer(context: Any, params: Any) -> Any:
            asked.append(customer)
            if len(asked) == 2:
                both.set()
            await both.wait()
            return await Chooser(choice)(context, params)

        async with http_client(alone.url, alone.token(customer), "legacy", answer) as client:
            result = await client.call_tool(HANDOFF, {"reason": f"For {choice}"})
        assert (result.structured_content or {})["choice"] == choice

    with anyio.fail_after(30):
        async with anyio.create_task_group() as customers:
            customers.start_soon(ask, "CUST002", "realtime")
            customers.start_soon(ask, "CUST003", "callback")
    assert sorted(asked) == ["CUST002", "CUST003"]


@pytest.mark.anyio
async def test_a_call_runs_to_its_end_when_its_client_has_gone(alone: HttpServer) -> None:
    """The answer comes with a request of its own, and the call was never in need of the first."""
    reason = "Whoever hangs up"
    async with talking(alone, "CUST002") as talk:
        await talk.open()
        call = tool_call(HANDOFF, {"reason": reason})
        async with talk.http.stream("POST", talk.url, json=call, headers=talk.headers()) as lines:
            async for line in lines.aiter_lines():
                if line.startswith("data: "):
                    break
        question = json.loads(line.removeprefix("data: "))
        assert question["method"] == "elicitation/create"
        (name,) = question["params"]["requestedSchema"]["properties"]
        answer = {"action": "accept", "content": {name: "callback"}}
        sent = await talk.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert sent.status_code == 202
        with anyio.fail_after(30):
            while '"callback"' not in (await talk.send(call)).text:
                await anyio.sleep(0.02)


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["experimental", "extensions"])
async def test_who_follows_directives_gets_no_words(alone: HttpServer, place: str) -> None:
    async with talking(alone) as talk:
        opened = await talk.send(initialize({place: {IDENTIFIER: SETTINGS}}))
        talk.session = opened.headers["Mcp-Session-Id"]
        assert (await talk.send(READY)).status_code == 202
        called = await talk.send(tool_call("prepare_money_transfer", FROM_LOCKED))
        (line,) = [line for line in called.text.splitlines() if '"result"' in line]
        result = json.loads(line.removeprefix("data: "))["result"]
        assert result["_meta"]["nextTool"]["tool"] == HANDOFF
        assert len(result["content"]) == 1
        assert "nextStep" not in result["structuredContent"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_who_shows_views_is_remembered(alone: HttpServer, mode: str) -> None:
    headers = {"Authorization": f"Bearer {alone.token()}"}
    transport = streamable_http_client(alone.url, http_client=httpx2.AsyncClient(headers=headers))
    async with Client(transport, mode=mode, extensions=[SHOWS_VIEWS]) as client:
        asked = await client.call_tool("prepare_money_transfer", {"amount": 1})
        assert (for_view(asked) or {})["accounts"]
        assert len((await client.list_resources()).resources) == 4


@pytest.mark.anyio
async def test_who_declares_nothing_to_be_asked_needs_no_session(alone: HttpServer) -> None:
    async with talking(alone) as talk:
        others = {"experimental": {"other": {}}, "extensions": {IDENTIFIER: {"version": "no"}}}
        for capabilities in ({}, {"sampling": {}}, {"elicitation": {"url": {}}}, others):
            opened = await talk.send(initialize(capabilities))
            assert opened.headers["Content-Type"] == "application/json"
            assert "Mcp-Session-Id" not in opened.headers
        called = await talk.send(LOOK)
        assert (called.status_code, called.headers["Content-Type"]) == (200, "application/json")
        # Nor does who reads no event streams, in which questions come.
        opened = await talk.send(ASK_ME, Accept="application/json")
        assert (opened.status_code, "Mcp-Session-Id" in opened.headers) == (200, False)
        # And a client of the next revision has none, whatever it says.
        modern = await talk.send(LOOK, **{"MCP-Protocol-Version": "2026-07-28"})
        assert "Mcp-Session-Id" not in modern.headers


# --- whose it is ----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_session_is_its_customers(alone: HttpServer) -> None:
    async with talking(alone) as mine, talking(alone, "CUST002") as other:
        unknown = await other.send(LOOK, **{"Mcp-Session-Id": "0" * 32})
        other.session = await mine.open()
        for stolen in (await other.send(LOOK), await other.send({}, "DELETE")):
            assert (stolen.status_code, stolen.content) == (404, unknown.content)
        assert await mine.works()
        # The customer's next token goes on with it.
        async with talking(alone, "CUST001", "bank:read") as later:
            later.session = mine.session
            assert await later.works()
            refused = await later.send(tool_call("prepare_money_transfer", FROM_LOCKED))
            assert refused.status_code == 403
        no_token = await mine.http.post(mine.url, json=LOOK, headers={"Mcp-Session-Id": "x"})
        assert no_token.status_code == 401


@pytest.mark.anyio
async def test_a_session_ends_when_its_client_says_so(alone: HttpServer) -> None:
    async with talking(alone) as talk:
        await talk.open()
        listened = await talk.send({}, "GET")
        assert (listened.status_code, listened.headers["Allow"]) == (405, "POST, DELETE")
        assert (await talk.send({}, "DELETE")).status_code == 200
        assert not await talk.works()
        assert (await talk.send({}, "DELETE")).status_code == 404
        talk.session = None
        assert (await talk.send({}, "DELETE")).status_code == 404


@pytest.mark.anyio
async def test_an_expired_token_has_no_session(database: Path) -> None:
    async with within(database) as bank:
        talk = bank.talk()
        await talk.open()
        long_ago = utc_now() - timedelta(hours=1)
        expired = bank.tokens.mint(
            "CUST001", ["bank:read"], now=long_ago, lifetime=timedelta(minutes=5)
        )
        refused = await talk.send(LOOK, Authorization=f"Bearer {expired}")
        assert refused.status_code == 401
        assert await talk.works()


@pytest.mark.anyio
async def test_a_customer_in_a_session_may_go_no_faster(database: Path) -> None:
    async with within(database, calls_per_second=1) as bank:
        talk = bank.talk()
        await talk.open()
        assert (await talk.send(LOOK)).status_code == 429


# --- how many, and how long -----------------------------------------------------------------------


@pytest.mark.anyio
async def test_who_has_most_sessions_gives_way_with_the_one_idle_for_longest(
    database: Path,
) -> None:
    async with within(database, max_sessions=3) as bank:
        one, first, second, third = (
            bank.talk("CUST002"),
            bank.talk(),
            bank.talk(),
            bank.talk("CUST003"),
        )
        for talk in (one, first, second):
            await talk.open()
        assert await first.works()
        await third.open()
        assert [await talk.works() for talk in (one, first, second, third)] == [
            *(True, True),
            *(False, True),
        ]


@pytest.mark.anyio
async def test_there_are_never_more_however_many_come_at_once(database: Path) -> None:
    async with within(database, max_sessions=2) as bank:
        talks = [bank.talk() for _ in range(8)]
        statuses: list[int] = []

        async def open_one(talk: Talk) -> None:
            opened = await talk.send(ASK_ME)
            statuses.append(opened.status_code)
            talk.session = opened.headers.get("Mcp-Session-Id")

        async with anyio.create_task_group() as clients:
            for talk in talks:
                clients.start_soon(open_one, talk)
        assert set(statuses) <= {200, 503}
        open_now = [talk for talk in talks if talk.session and (await talk.send(READY)).is_success]
        assert len(open_now) == 2


@pytest.mark.anyio
async def test_where_none_is_idle_a_new_session_is_refused(database: Path) -> None:
    async with within(database, max_sessions=1) as bank:
        talk, other = bank.talk(), bank.talk("CUST002")
        await talk.open()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(talk.send, ASK)
            await anyio.wait_all_tasks_blocked()
            refused = await other.send(ASK_ME)
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert "in use" in refused.json()["error"]["message"]
            # Whoever is never asked does not need one.
            assert (await other.send(LOOK)).status_code == 200
            assert (await talk.send({}, "DELETE")).status_code == 200
        await other.open()


@pytest.mark.anyio
async def test_a_session_that_is_idle_for_too_long_ends(database: Path) -> None:
    async with within(database, idle=0.1) as bank:
        talk = bank.talk()
        await talk.open()
        assert await talk.works()
        await anyio.sleep(0.6)
        assert not await talk.works()


@pytest.mark.anyio
async def test_calls_that_wait_for_an_answer_are_bounded(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_CALLS", 2)
    async with within(database) as bank:
        talk = bank.talk()
        await talk.open()
        refused: list[str] = []

        async def ask(number: int) -> None:
            answer = await talk.send({**tool_call(HANDOFF, {"reason": f"{number}"}), "id": number})
            refused.append(answer.text)

        async with anyio.create_task_group() as waiting:
            for number in range(3):
                waiting.start_soon(ask, number)
            with anyio.fail_after(30):
                while not refused:
                    await anyio.sleep(0.01)
            assert "2 calls of this session are under way" in refused[0]
            assert (await talk.send({}, "DELETE")).status_code == 200
        assert len(refused) == 3


@pytest.mark.anyio
async def test_no_sessions_if_there_are_to_be_none(database: Path) -> None:
    async with within(database, max_sessions=0) as bank:
        talk = bank.talk()
        assert "Mcp-Session-Id" not in (await talk.send(ASK_ME)).headers
        assert (await talk.send({}, "DELETE")).status_code == 405


# --- a client that nobody here wrote --------------------------------------------------------------


@pytest.mark.needs_program(missing("@modelcontextprotocol/sdk"))
def test_the_typescript_sdk_is_asked(alone: HttpServer, tmp_path: Path) -> None:
    script = Path(__file__).with_name("asked_client.mjs")
    # Node looks for packages beside the script.
    (tmp_path / script.name).write_text(script.read_text())
    (tmp_path / "node_modules").symlink_to(MODULES.resolve())
    ran = subprocess.run(
        [str(node()), script.name, alone.url, "decline", "cancel", "accept"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "BANK_TOKEN": alone.token()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"statuses": ["declined", "declined", "posted"], "asked": 3}


@pytest.mark.anyio
async def test_who_ends_a_session_in_the_middle_of_its_calls_is_no_fault(alone: HttpServer) -> None:
    async with talking(alone, "CUST002") as talk:
        for _ in range(10):
            talk.session = None
            await talk.open()
            async with anyio.create_task_group() as at_once:
                for number in range(4):
                    at_once.start_soon(talk.send, {**LOOK, "id": number})
                at_once.start_soon(talk.send, {}, "DELETE")
            assert not await talk.works()
    assert "Traceback" not in alone.logged()


@pytest.mark.anyio
async def test_of_two_requests_with_one_id_the_second_is_refused(alone: HttpServer) -> None:
    answers: list[httpx2.Response] = []
    async with talking(alone, "CUST002") as talk:

        async def call(request_id: Any) -> None:
            answers.append(await talk.send({**LOOK, "id": request_id}))

        await talk.open()
        async with anyio.create_task_group() as at_once:
            for request_id in (70, "70", 70, "70"):
                at_once.start_soon(call, request_id)
        assert await talk.works()
    refused = [answer.json()["error"]["code"] for answer in answers if answer.status_code == 400]
    assert refused == [-32600] * len(refused)
    assert 1 <= len(refused) < len(answers)
