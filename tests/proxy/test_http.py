"""The proxy over HTTP: whose each request is, and that nobody gets at anybody else's."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from typer.testing import CliRunner

from banking_server.proxy.callers import Callers
from banking_server.proxy.cli import app
from banking_server.proxy.http import _Door
from banking_server.proxy.options import Command, HttpOptions, ProxyOptions

from ..kit.command import PATIENCE
from ..kit.serving import running
from .pipe import JSON, NEW, OLD, STRANGE
from .wire import UNDECIDED, Refused, Running, Wire, proxy_over_http, strange_over_http, wire

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("revision", [OLD, NEW])


class Noted:
    """What happened to strange servers, in the order in which it did."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    async def until(self, line: str) -> None:
        await Wire.until(lambda: line in self.lines)


@pytest.fixture(scope="module")
def notes(folder: Path) -> Noted:
    return Noted(folder / "notes")


@pytest.fixture(scope="module")
def strange(folder: Path, notes: Noted) -> Iterator[str]:
    """The address of a strange server."""
    with strange_over_http(folder, STRANGE_NOTES=str(notes.path)) as server:
        yield server.url


@pytest.fixture(scope="module")
def proxy(folder: Path, strange: str) -> Iterator[Running]:
    """A proxy with nothing chosen. Each connection to the server behind is a session there."""
    with proxy_over_http(folder, "--url", of_sessions(strange)) as started:
        yield started
        assert started.interrupt() == 0
        assert len(started.logged().splitlines()) == 1


def of_sessions(url: str) -> str:
    return url.replace("/mcp", f"/{OLD}/mcp")


async def who(client: Wire) -> JSON:
    return dict((await client.call("who"))["structuredContent"])


async def session_of(client: Wire) -> str:
    """Return which session of the server behind this caller's calls go to."""
    return str((await who(client))["session"])


def without_cookies() -> httpx2.AsyncClient:
    """A client that keeps no cookies, as many do."""

    http = httpx2.AsyncClient(timeout=PATIENCE)
    http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return http


@BOTH
async def test_two_callers_never_share(proxy: Running, revision: str) -> None:
    async with (
        wire(proxy.url, revision) as first,
        wire(proxy.url, revision) as second,
        wire(proxy.url, revision, authorization="Bearer 1") as third,
        wire(proxy.url, revision, authorization="Bearer 2") as fourth,
    ):
        callers = (first, second, third, fourth)
        sessions = [await session_of(client) for client in callers]
        assert len(set(sessions)) == 4
        assert [await session_of(client) for client in callers] == sessions


async def test_a_caller_without_a_session_is_known_again(proxy: Running) -> None:
    """By its header, or by its cookie: on any connection, and while another one is in use."""
    async with wire(proxy.url, NEW, authorization="Bearer 3") as one:
        session = await session_of(one)
        async with wire(proxy.url, NEW, authorization="Bearer 3") as other:
            assert await session_of(other) == session
        # Another client of the same user could not answer what this one can be asked.
        async with wire(proxy.url, NEW, authorization="Bearer 3", capabilities={}) as other:
            assert await session_of(other) != session
    async with wire(proxy.url, NEW) as anonymous:
        session = await session_of(anonymous)
        async with anonymous.listening():
            assert await session_of(anonymous) == session
        cookie = next(iter(anonymous.http.cookies.jar))
        assert cookie.has_nonstandard_attr("HttpOnly")
        # Only a name that the proxy gave is one: nobody can choose it for somebody else.
        forged = {"Cookie": f"{cookie.name}={'x' * len(cookie.value or '')}"}
        async with (
            wire(proxy.url, NEW, headers=forged) as forger,
            wire(proxy.url, NEW, headers=forged) as victim,
        ):
            sessions = {session, await session_of(forger), await session_of(victim)}
            assert len(sessions) == 3


async def test_who_keeps_no_cookie_is_known_by_the_connection(proxy: Running, notes: Noted) -> None:
    async with wire(proxy.url, NEW, http=without_cookies()) as client:
        session = await session_of(client)
        assert await session_of(client) == session
    await notes.until(f"ended {session}")


@pytest.mark.parametrize(
    ("literal", "code"),
    [
        *[(r'"\ud800"', -32600), ("[" * 255 + "]" * 255, -32600), ("1e400", -32602)],
        *[("0.010000000000000001", -32602), ("NaN", -32700), ("}", -32700)],
    ],
    ids=lambda value: str(value)[:20],
)
async def test_what_is_no_message_is_refused_alone(proxy: Running, literal: str, code: int) -> None:
    """The server behind does not see it, and the caller's other calls go on."""
    async with wire(proxy.url, NEW, authorization="Bearer 4") as client:
        session = await session_of(client)
        for message in (
            client._message("tools/call", {"name": "who", "arguments": {"x": "HERE"}}, {}),
            client._message("tools/call", {"name": "who", "arguments": {}}, {"x": "HERE"}),
            client._message("tools/call", {"name": "who", "inputResponses": {"q": "HERE"}}, {}),
        ):
            text = json.dumps({**message, "id": 7}).replace('"HERE"', literal)
            headers = client._headers(message)
            response = await client.http.post(proxy.url, content=text.encode(), headers=headers)
            told = response.json()
            assert (response.status_code, told["error"]["code"]) == (400, code)
            assert told["id"] == (None if literal == "}" else 7)
            assert "\n" not in told["error"]["message"]
        assert await session_of(client) == session


async def test_an_answer_that_cannot_be_read_is_one_to_who_asked(proxy: Running) -> None:
    answers = {"elicitation/create": {"action": "accept", "content": {"colour": "\ud800"}}}
    async with wire(proxy.url, OLD, answers=answers) as client:
        with pytest.raises(Refused) as refused:
            await client.call("form")
        assert "surrogate" in refused.value.error["message"]


async def test_a_session_is_of_whoever_began_it(proxy: Running) -> None:
    async with (
        wire(proxy.url, OLD, authorization="Bearer 1") as owner,
        wire(proxy.url, OLD) as anonymous,
    ):
        for session, authorization in (
            (owner.session, "Bearer 2"),
            (owner.session, None),
            (anonymous.session, "Bearer 1"),
        ):
            thief = Wire(proxy.url, OLD, authorization=authorization, session=session)
            with pytest.raises(Refused) as refused:
                await thief.call("who")
            assert refused.value.status == 404
            await thief.http.aclose()
        nobody = Wire(proxy.url, OLD, session="nobody's")
        with pytest.raises(Refused) as unknown:
            await nobody.call("who")
        assert (unknown.value.status, unknown.value.error) == (404, refused.value.error)
        await nobody.http.aclose()
        await who(owner)


@BOTH
async def test_a_call_that_nobody_waits_for_is_cancelled(
    proxy: Running, notes: Noted, revision: str
) -> None:
    async with wire(proxy.url, revision) as client:

        async def wait(name: str) -> None:
            with contextlib.suppress(Refused):
                await client.call("slow", {"text": f"{revision} {name}"})

        async with anyio.create_task_group() as group:
            for name in ("left", "stays"):
                group.start_soon(wait, name)
                await notes.until(f"slow {revision} {name}")
            if revision == OLD:
                number = {"requestId": client.last - 1, "reason": "enough"}
                await client.tell("notifications/cancelled", number)
                await notes.until(f"cancelled {revision} left")
                assert f"cancelled {revision} stays" not in notes.lines
            group.cancel_scope.cancel()
        if revision == NEW:
            await notes.until(f"cancelled {revision} left")
            await notes.until(f"cancelled {revision} stays")
            await who(client)
    # The end of a session ends what runs in it.
    await notes.until(f"cancelled {revision} stays")


async def test_an_answer_comes_on_any_connection_once_and_from_who_was_asked(
    proxy: Running, notes: Noted
) -> None:
    question = {"name": "first_asks", "arguments": {}}
    before = notes.lines.count("first_asks")

    async def begun(**members: Any) -> tuple[JSON, JSON]:
        client = Wire(proxy.url, NEW, http=without_cookies(), **members)
        interim = await client.ask("tools/call", question)
        await client.http.aclose()
        assert interim["resultType"] == "input_required"
        ((key, _),) = interim["inputRequests"].items()
        answers = {key: {"action": "accept", "content": {"colour": "blue"}}}
        return {**question, "requestState": interim["requestState"]}, {"inputResponses": answers}

    async def refused(params: JSON, **members: Any) -> JSON:
        client = Wire(proxy.url, NEW, **members)
        with pytest.raises(Refused) as refusal:
            await client.ask("tools/call", params)
        await client.http.aclose()
        return refusal.value.error

    state, answers = await begun()
    later = Wire(proxy.url, NEW, http=without_cookies())
    result = await later.ask("tools/call", {**state, **answers})
    await later.http.aclose()
    assert "blue" in result["content"][1]["text"]
    assert notes.lines.count("first_asks") == before + 1
    await refused({**state, **answers})

    state, answers = await begun(authorization="Bearer asked")
    assert "asked anew" in (await refused({**state, **answers}))["message"]
    assert await refused({**state, **answers}, authorization="Bearer other")
    changed = {**state, **answers, "name": "form"}
    assert await refused(changed, authorization="Bearer asked")
    owner = Wire(proxy.url, NEW, authorization="Bearer asked")
    result = await owner.ask("tools/call", {**state, **answers})
    await owner.http.aclose()
    assert "blue" in result["content"][1]["text"]
    assert notes.lines.count("first_asks") == before + 2


@pytest.fixture(scope="module")
def bounded(folder: Path, strange: str) -> Iterator[Running]:
    """A proxy for two callers who are quick, and for names of its own."""
    chosen = ("--max-callers", "2", "--idle", "1", "--wait-for-user", "0.3")
    names = ("--allow-host", "bank.example", "--allow-origin", "https://app.example")
    with proxy_over_http(folder, *chosen, *names, "--url", of_sessions(strange)) as started:
        yield started


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:9000"}, 421),
        ({"Host": "bank.example.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://app.example:1"}, 403),
        ({"Origin": "http://localhost:5173"}, None),
        ({"Host": "bank.example", "Origin": "https://app.example"}, None),
        ({"Host": "bank.example:8443"}, None),
        ({"Host": "Bank.Example:8443"}, None),
        ({"Host": "bank.example:1@evil"}, 421),
    ],
)
async def test_only_known_names_are_let_in(
    bounded: Running, headers: dict[str, str], status: int | None
) -> None:
    for revision in (OLD, NEW):
        sent = {**headers, "MCP-Protocol-Version": revision}
        async with httpx2.AsyncClient(headers=sent) as http:
            # Whatever is wrong with it else is found behind the door.
            came = (await http.post(bounded.url, content=b"{}")).status_code
        assert (came == status) if status else (came not in (403, 421)), came


async def test_a_page_from_an_allowed_origin_may_read_the_answers(bounded: Running) -> None:
    wanted = {"Access-Control-Request-Method": "POST"}
    wanted["Access-Control-Request-Headers"] = "content-type, mcp-session-id"
    async with httpx2.AsyncClient() as http:
        for origin, may in (("https://app.example", True), ("https://evil.example", False)):
            asked = await http.options(bounded.url, headers={"Origin": origin, **wanted})
            assert (asked.headers.get("access-control-allow-origin") == origin) is may
    async with wire(bounded.url, OLD, headers={"Origin": "https://app.example"}) as client:
        assert client.session


async def test_callers_are_bounded_in_number(bounded: Running, notes: Noted) -> None:
    async def refused(revision: str, **members: Any) -> None:
        late = Wire(bounded.url, revision, **members)
        with pytest.raises(Refused) as refusal:
            await late.open()
        assert "2 callers" in refusal.value.error["message"]
        assert refusal.value.status == 503
        await late.http.aclose()

    async with wire(bounded.url, OLD) as first, first.listening():
        # Whoever sends no header keeps nobody out who does.
        for revision in (OLD, NEW):
            await refused(revision)
        async with wire(bounded.url, NEW, authorization="Bearer second") as second:
            # Nor does an idle one make room for them.
            await session_of(second)
            await refused(NEW)
            own = await session_of(second)
            async with second.listening():
                for revision in (OLD, NEW):
                    await refused(revision)
                    await refused(revision, authorization="Bearer late")
                assert await session_of(second) == own
            # Whoever is idle makes room.
            third = Wire(bounded.url, NEW, authorization="Bearer third")
            with anyio.fail_after(PATIENCE):
                while not third.greeting:
                    with contextlib.suppress(Refused):
                        await third.open()
            await notes.until(f"ended {own}")
            await third.http.aclose()


async def test_callers_are_bounded_in_time(bounded: Running, notes: Noted) -> None:
    async with wire(bounded.url, OLD) as session:
        await notes.until(f"ended {await session_of(session)}")
        with pytest.raises(Refused) as refused:
            await who(session)
        assert refused.value.status == 404
    async with wire(bounded.url, NEW) as caller:
        own = await session_of(caller)
        await notes.until(f"ended {own}")
        assert await session_of(caller) != own


SLOWLY = """
import os, runpy, sys, time
with open(os.environ["STRANGE_NOTES"], "a") as notes:
    notes.write(f"{os.getpid()}\\n")
time.sleep(1)
runpy.run_path(sys.argv.pop(1), None, "__main__")
"""


async def test_a_server_that_starts_slowly_is_waited_for_as_long_as_somebody_waits(
    folder: Path,
) -> None:
    notes = Noted(folder / "slowly")
    command = [STRANGE[0], "-c", SLOWLY, STRANGE[1]]
    given = {"STRANGE_NOTES": str(notes.path)}
    with proxy_over_http(folder, "--idle", "0.4", "--", *command, **given) as proxy:
        async with wire(proxy.url, NEW) as client:
            assert client.greeting["supportedVersions"] == [NEW]
        async with anyio.create_task_group() as group:
            client = Wire(proxy.url, NEW)
            group.start_soon(client.open)
            await Wire.until(lambda: len(notes.lines) == 2)
            group.cancel_scope.cancel()
        await client.http.aclose()
        for pid in notes.lines[:2]:
            await Wire.until(lambda pid=int(pid): has_ended(pid))


async def test_what_did_not_begin_has_no_name(folder: Path) -> None:
    with proxy_over_http(folder, "--", "true") as proxy:
        client = Wire(proxy.url, OLD)
        with pytest.raises(Refused) as refused:
            await client.open()
        assert "it ended before it answered" in refused.value.error["message"]
        assert client.session is None
        await client.close()


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_an_answer_is_waited_for_a_while(bounded: Running, notes: Noted) -> None:
    """Who is asked keeps its connection until then."""
    async with wire(bounded.url, NEW) as client:
        own = await session_of(client)
        call = {"name": "form", "arguments": {}}
        interim = await client.ask("tools/call", call)
        await notes.until(f"ended {own}")
        with pytest.raises(Refused) as refused:
            await client.ask("tools/call", {**call, "requestState": interim["requestState"]})
        assert "\n" not in refused.value.error["message"]


# --- the caller's own token -----------------------------------------------------------------------


class _Elsewhere(BaseHTTPRequestHandler):
    """Another server: its paths but one lead to the strange one, or to itself."""

    seen: list[tuple[str, str | None]]
    to: str

    def do_POST(self) -> None:
        self.seen.append((self.path, self.headers["Authorization"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(307)
        self.send_header("Location", self.to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def leading(to: str) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that sends every request elsewhere, and what it got."""
    seen: list[tuple[str, str | None]] = []
    handler = type("Handler", (_Elsewhere,), {"seen": seen, "to": to})
    with running(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as origin:
        yield origin, seen


async def test_a_token_goes_where_it_is_sent_to(folder: Path, strange: str) -> None:
    with proxy_over_http(folder, "--url", strange, TOOL_CHAINING_PROXY_TOKEN="own") as proxy:
        for revision in (OLD, NEW):
            async with wire(proxy.url, revision, authorization="Bearer mine") as client:
                assert (await who(client))["authorization"] == "Bearer own"
                # It is the operator's token that expires, which is not the caller's business.
                if revision == NEW:
                    await client.call("expire")
                    with pytest.raises(Refused) as refused:
                        await who(client)
                    assert refused.value.error["message"].endswith("answered HTTP 401 Unauthorized")
                    assert refused.value.challenge is None
                    assert refused.value.status not in (401, 403)


async def test_a_caller_s_token_goes_upstream_where_that_was_chosen(
    folder: Path, strange: str
) -> None:
    with proxy_over_http(folder, "--url", strange, "--forward-authorization") as proxy:
        for revision in (OLD, NEW):
            for token in ("Bearer 1", "Basic Mjox", None):
                async with wire(proxy.url, revision, authorization=token) as client:
                    assert (await who(client))["authorization"] == token
        client = Wire(proxy.url, NEW)
        client.http.headers = httpx2.Headers([(b"Authorization", b"Bearer s\xe9cret")])
        with pytest.raises(Refused) as refused:
            await client.open()
        assert "Authorization header has a character" in refused.value.error["message"]
        await client.http.aclose()

        for revision in (OLD, NEW):
            await refused_like_upstream(proxy.url, revision)


async def refused_like_upstream(url: str, revision: str) -> None:
    """Who may not do it, or not any more, is told so by HTTP, as without the proxy."""
    for token, status, error in (
        ("Bearer expired", 401, "invalid_token"),
        ("Bearer narrow", 403, "insufficient_scope"),
    ):
        client = Wire(url, revision, authorization=token)
        with pytest.raises(Refused) as refused:
            await client.open()
        assert refused.value.status == status
        assert f'error="{error}"' in (refused.value.challenge or "")
        assert 'resource_metadata="https://strange.example/' in (refused.value.challenge or "")
        assert f"HTTP {status}" in refused.value.error["message"]
        assert client.session is None
        await client.http.aclose()
    for tool in ("expire", "expire_first"):
        async with wire(url, revision, authorization=f"Bearer {revision} {tool}") as client:
            # What was done is told, whatever came after it.
            done = await client.call(tool)
            assert done["content"][0]["text"] == "Expired."
            for method, params in (("tools/call", {"name": "who"}), ("tools/list", {})):
                with pytest.raises(Refused) as refused:
                    await client.ask(method, params)
                assert refused.value.status == 401
                assert "invalid_token" in (refused.value.challenge or "")


@BOTH
async def test_a_caller_s_token_stays_where_nothing_was_chosen(
    proxy: Running, revision: str
) -> None:
    async with wire(proxy.url, revision, authorization="Bearer mine") as client:
        assert (await who(client))["authorization"] is None


async def test_no_token_follows_a_redirect(folder: Path, strange: str) -> None:
    with (
        leading(strange) as (third, at_third),
        leading(f"{third}/mcp") as (second, at_second),
        proxy_over_http(folder, "--url", f"{second}/mcp", "--forward-authorization") as proxy,
    ):
        for revision in (OLD, NEW):
            client = Wire(proxy.url, revision, authorization="Bearer mine")
            with pytest.raises(Refused) as refused:
                await client.open()
            assert "\n" not in refused.value.error["message"]
            await client.http.aclose()
        assert {token for _, token in at_second} == {"Bearer mine"}
        assert not at_third


async def test_who_could_not_be_connected_holds_no_place(folder: Path) -> None:
    with (
        socket.socket() as unused,
        proxy_over_http(
            folder, "--max-callers", "4", "--url", f"http://127.0.0.1:{reserved(unused)}/mcp"
        ) as proxy,
    ):
        for revision in (OLD, OLD, OLD, NEW, NEW, OLD):
            client = Wire(proxy.url, revision)
            with pytest.raises(Refused) as refused:
                await client.open()
            assert refused.value.error["message"].startswith("Cannot talk to ")
            await client.http.aclose()


def reserved(unused: socket.socket) -> int:
    """Return a port at which nobody listens as long as `unused` is open."""
    unused.bind(("127.0.0.1", 0))
    return int(unused.getsockname()[1])


# --- the process ----------------------------------------------------------------------------------


async def test_each_caller_has_a_process_that_may_die_and_ends_with_the_proxy(
    folder: Path,
) -> None:
    noted = folder / "notes of processes"
    given = {"STRANGE_SETTING": "set", "TOOL_CHAINING_PROXY_TOKEN": "own"}
    given["STRANGE_NOTES"] = str(noted)
    with proxy_over_http(folder, "--", *STRANGE, **given) as proxy:
        async with (
            wire(proxy.url, OLD) as session,
            session.listening(),
            wire(proxy.url, NEW) as caller,
            caller.listening(),
        ):
            pids = {}
            for client in (session, caller):
                told = await who(client)
                assert (told["environment"], told["secret"]) == ("set", None)
                with pytest.raises(Refused) as refused:
                    await client.call("die")
                message = refused.value.error["message"]
                assert "not known" in message
                assert "\n" not in message
                pids[client.revision] = (await who(client))["pid"]
                assert pids[client.revision] != told["pid"]
                assert (await client.call("first"))["content"][1]["text"] == "Two."
            assert pids[OLD] != pids[NEW]

            async def given_up(client: Wire, tool: str, **arguments: str) -> None:
                with pytest.raises(Refused) as refused:
                    await client.call(tool, arguments)
                assert "took effect is not known" in refused.value.error["message"]

            session.answers["elicitation/create"] = UNDECIDED
            async with anyio.create_task_group() as calls:
                for client in (session, caller):
                    calls.start_soon(partial(given_up, client, "slow", text=client.revision))
                    await Noted(noted).until(f"slow {client.revision}")
                calls.start_soon(given_up, session, "form")
                await Wire.until(lambda: "elicitation/create" in session.methods)
                proxy.process.send_signal(signal.SIGHUP)
            for pid in pids.values():
                await Wire.until(lambda pid=pid: has_ended(pid))
            assert proxy.process.wait(PATIENCE) == 0
        assert len(proxy.logged().splitlines()) == 1


async def test_who_is_cut_off_at_the_end_is_told_so() -> None:
    """When the time for winding down is over, all that runs is cancelled."""
    begun, sent = anyio.Event(), []

    async def never(*_: Any) -> None:
        begun.set()
        await anyio.sleep_forever()

    async def receive() -> JSON:
        return {"type": "http.request", "body": b'{"jsonrpc":"2.0","id":7,"method":"ping"}'}

    async def send(message: Any) -> None:
        sent.append(message)

    callers = Callers(ProxyOptions(server=Command(("true",), {})), HttpOptions())
    door = _Door(never, callers)
    scope = {"type": "http", "method": "POST", "state": {"connection": "one"}}
    scope["headers"] = [(b"mcp-protocol-version", NEW.encode())]
    for ending in (False, True):
        if ending:
            callers.end()
        serving = asyncio.create_task(door(scope, receive, send))
        await begun.wait()
        begun = anyio.Event()
        serving.cancel()
        await asyncio.wait([serving])
        assert serving.cancelled() is not ending
    head, body = sent
    told = json.loads(body["body"])
    assert (head["status"], told["id"]) == (503, 7)
    assert "This proxy is ending." in told["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--http", "--host", "0.0.0.0"), "--allow-host"),
        (("--http", "--host", "127.bank.example"), "--allow-host"),
        (("--http", "--forward-authorization"), "--url"),
        (("--port", "9000"), "--http"),
        (("--allow-origin", "https://app.example"), "--http"),
        (("--http", "--host", "no such host", "--allow-host", "x"), "Cannot serve at"),
        (("--http", "--allow-host", "https://bank.example"), "--allow-host"),
        (("--http", "--allow-origin", "https://app.example/"), "--allow-origin"),
        (("--http", "--allow-origin", "app.example"), "--allow-origin"),
    ],
)
def test_what_cannot_be_is_one_line_at_the_start(arguments: tuple[str, ...], says: str) -> None:
    refused(says, *arguments, "--", *STRANGE)


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused("in use", "--http", "--port", port, "--", *STRANGE)


def test_two_kinds_of_token_are_one_too_many() -> None:
    url = ("--url", "http://127.0.0.1:1/mcp")
    given = {"TOOL_CHAINING_PROXY_TOKEN": "own"}
    refused("TOOL_CHAINING_PROXY_TOKEN", "--http", "--forward-authorization", *url, **given)


def refused(says: str, *arguments: str, **variables: str) -> None:
    """The command ends at once: exit code 2, and one line that says why."""
    ended = CliRunner().invoke(app, arguments, env=variables)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert says in line
