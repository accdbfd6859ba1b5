"""Among real servers: one wrong member costs one thing, and every request gets its answer.

Each row has one thing wrong: in a list, a result, a greeting or a line. The client reads plain
JSON.
"""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from tool_chaining.hosting.answers import GRACE, assigned
from tool_chaining.hosting.reading import NOT_KNOWN
from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.options import Address, ProxyOptions, Server

from ..kit.command import PATIENCE
from ..kit.serving import Handler, serving
from .scripted import Shop, said
from .wire import CHAINING, JSON, OLD, Wire, proxy_in_a_thread, wire

pytestmark = pytest.mark.anyio

READS = {"readOnlyHint": True}
SECOND = {"name": "pay", "inputSchema": {"type": "object"}, "annotations": READS}


def directive(**members: Any) -> JSON:
    return {"nextTool": {"tool": "pay", "arguments": {}, **members}}


@dataclass
class Chains:
    """A client of the proxy, and what the operator reads."""

    client: Wire
    log: Any

    async def run(self) -> tuple[JSON, str]:
        """Return the result of a chain, and what became of its second call, or of the chain."""
        result = await self.client.ask("tools/call", {"name": "prepare"})
        meta = result.get("_meta")
        made: JSON = {"outcome": "not followed", "followUps": []}
        made = meta.get(CHAINING, made) if isinstance(meta, dict) else made
        return result, "".join(one["status"] for one in made["followUps"]) or made["outcome"]

    def named(self) -> list[str]:
        ours = [r.getMessage() for r in self.log.records if r.name.startswith("tool_chaining")]
        self.log.clear()
        return ours


@asynccontextmanager
async def chains(server: Server, caplog: Any) -> AsyncIterator[Chains]:
    options = ProxyOptions(server, consent_of(None, trust_hints=True))
    caplog.set_level(logging.WARNING, "tool_chaining")
    with anyio.fail_after(2 * PATIENCE), proxy_in_a_thread(options) as url:
        async with wire(url, OLD, capabilities={}) as client:
            yield Chains(client, caplog)


def scripted(folder: Path, **script: Any) -> Server:
    """A server whose `prepare` names `pay`; of each list, the first chain gets the first item."""
    answers = {"prepare": [said("Prepared.", "pay")], "pay": [said("Paid.")]}
    answers |= script.pop("answers", {})
    tools = script.pop("tools", [[SECOND]])
    return Shop(folder, answers=answers, tools=tools, **script).options().server


START = '{"jsonrpc":"2.0","id":$ID'
OTHER = {**SECOND, "name": "other"}

OTHERS: list[tuple[Any, str]] = [
    ({**OTHER, "annotations": []}, ""),
    ({**OTHER, "annotations": None}, ""),
    ({**OTHER, "annotations": "safe"}, "the annotations of the tool"),
    ({**OTHER, "annotations": {"readOnlyHint": "sometimes"}}, "a hint of the tool"),
    ({**OTHER, "inputSchema": None}, ""),
    ({"name": "other"}, ""),
    ({**OTHER, "inputSchema": []}, ""),
    ({**OTHER, "inputSchema": "object"}, "the inputSchema of the tool"),
    ({**OTHER, "description": 5}, ""),
    ({**OTHER, "_meta": []}, ""),
    ({**OTHER, "_meta": {"ui": "app"}}, ""),
    ({**OTHER, "_meta": "app"}, "the _meta of the tool"),
    ({**OTHER, "_meta": {"ui": {"visibility": "app"}}}, "the visibility of the tool"),
    ({"inputSchema": {}}, "has no name"),
    # Each is named once.
    *((bad, "") for bad in ({**OTHER, "name": None}, {**OTHER, "name": 7}, {"name": ""})),
    *((bad, "") for bad in (None, "other", [], 5)),
    ({**SECOND, "name": "prepare", "title": "?"}, ""),
]
NEXT: list[JSON] = [
    {"inputSchema": None},
    {"inputSchema": []},
    {"inputSchema": 5},
    {"title": []},
    {"_meta": {"ui": None}},
]


async def test_a_malformed_tool_is_left_out_alone(tmp_path: Path, caplog: Any) -> None:
    lists = [*([SECOND, bad] for bad, _ in OTHERS), *([{**SECOND, **bad}] for bad in NEXT)]
    async with chains(scripted(tmp_path, tools=lists), caplog) as proxy:
        names = [
            *(name for _, name in OTHERS),
            *("inputSchema" * (5 in one.values()) for one in NEXT),
        ]
        for tools, named in zip(lists, names, strict=True):
            assert (await proxy.run())[1] == "made", tools
            warnings = proxy.named()
            assert len(warnings) == bool(named), tools
            assert named in "".join(warnings)


@pytest.mark.parametrize(
    ("page", "status"),
    [
        ({"nextCursor": None}, "made"),
        ({"nextCursor": ""}, "made"),
        ({"nextCursor": 5}, "not_made"),
        *(({"ttlMs": bad}, "made") for bad in ("soon", 10**400)),
        ({"_meta": []}, "made"),
        ({"resultType": 5}, "made"),
    ],
    ids=str,
)
async def test_a_malformed_page_of_the_list_is_read(
    page: JSON, status: str, tmp_path: Path, caplog: Any
) -> None:
    """After a page that cannot be asked for, the tools are known, and the hints spare nothing."""
    async with chains(scripted(tmp_path, page=page), caplog) as proxy:
        result, made = await proxy.run()
        assert made == status
        assert "could not be read" not in result["content"][-1]["text"]


@pytest.mark.parametrize(
    ("script", "why", "named"),
    [
        (
            {"tools": [[SECOND, {**SECOND, "title": "Pay now"}]]},
            "the server lists it twice, with differences",
            "is listed twice",
        ),
        (
            {"tools": [[{**OTHER, "name": None}]]},
            "it is not in the part of the server's list that could be read",
            "has no name",
        ),
        ({"tools": [[OTHER]]}, "the server does not list it", "led to no call"),
        ({"page": {"tools": None}}, "list could not be read", "cannot be read"),
    ],
)
async def test_an_unreadable_list_is_not_an_empty_one(
    script: JSON, why: str, named: str, tmp_path: Path, caplog: Any
) -> None:
    """An unreadable list is not an empty one."""
    async with chains(scripted(tmp_path, **script), caplog) as proxy:
        result, status = await proxy.run()
        assert (status, why in result["content"][-1]["text"]) == ("not_made", True), result
        assert named in "".join(proxy.named())


def with_audience(audience: Any) -> JSON:
    return {"content": [{"type": "text", "text": "Paid.", "annotations": {"audience": audience}}]}


FIRSTS: list[JSON] = [
    {"isError": None},
    {"task": None},
    {"content": None},
    {"structuredContent": "x"},
    {"structuredContent": None},
    {"_meta": directive(title=5)},
    {"_meta": directive(title=None)},
    {"_meta": {**directive(), "progressToken": []}},
]
SECONDS: list[tuple[JSON, bool, bool]] = [
    # Whether the merged result is an error, and whether its model reads what was returned.
    ({}, False, True),
    *(({bad: None}, False, True) for bad in ("isError", "task", "resultType")),
    ({"resultType": 5}, False, True),
    *(({"isError": bad}, True, True) for bad in ("no", 0, [], {}, "")),
    *(({"_meta": bad}, False, True) for bad in ([], None, "x", 5)),
    *(({"structuredContent": bad}, False, True) for bad in ([], None, "x")),
    *(({"content": bad}, False, False) for bad in (None, {}, [5], [None], [{}])),
    # A text or an item that is in no list can mean only one thing.
    ({"content": "Paid."}, False, True),
    ({"content": {"type": "text", "text": "Paid."}}, False, True),
    *(({"content": [{"type": bad}]}, False, False) for bad in ("text", "image", "resource", None)),
    ({"content": [{"type": "text", "text": "Paid.", "annotations": []}]}, False, True),
    *((with_audience(bad), False, False) for bad in ("user", 5, {}, [5], ["user", None])),
    (with_audience(None), False, True),
    (
        {"content": [7, {"type": "text", "text": None}, *with_audience(None)["content"]]},
        False,
        True,
    ),
]


async def test_a_malformed_result_is_read_member_by_member(tmp_path: Path, caplog: Any) -> None:
    first = {"content": [], "_meta": directive(), "structuredContent": {"a": 1}}
    answers = {
        "prepare": [
            *({"result": {**first, **bad}} for bad in FIRSTS),
            *[{"result": first}] * len(SECONDS),
        ],
        "pay": [
            *[said("Paid.")] * len(FIRSTS),
            *({"result": {**said("Paid.")["result"], **bad}} for bad, *_ in SECONDS),
        ],
    }
    async with chains(scripted(tmp_path, answers=answers), caplog) as proxy:
        for bad in FIRSTS:
            assert (await proxy.run())[1] == "made", bad
        for bad, is_error, is_read in SECONDS:
            result, status = await proxy.run()
            assert (status, result["isError"]) == ("made", is_error), bad
            assert ("Paid." in result["structuredContent"]["followUps"][0]) is is_read, bad
            assert all(isinstance(item.get("text", ""), str) for item in result["content"]), bad


@pytest.mark.parametrize(
    "capabilities",
    [
        None,
        [],
        {"tools": {}, "extensions": []},
        *({"tools": {}, "experimental": {CHAINING: bad}} for bad in ([], None, {"version": "1"})),
        {"tools": {}, "experimental": CHAINING},
    ],
    ids=str,
)
async def test_malformed_capabilities_advertise_nothing(
    capabilities: Any, tmp_path: Path, caplog: Any
) -> None:
    server = scripted(tmp_path, greeting={"capabilities": capabilities})
    async with chains(server, caplog) as proxy:
        result, status = await proxy.run()
        assert (status, "nextTool" in result["_meta"]) == ("not followed", True)
        named = "".join(proxy.named())
        assert "not followed, because the server does not advertise" in named
        assert ("capabilities cannot be read" in named) is not isinstance(capabilities, dict)


class Answering(Handler):
    """A server over HTTP whose follow-up call is answered with a line, alone or as an event."""

    line = ""

    def do_POST(self) -> None:
        message = self.message()
        if "id" not in message:
            return self.answer(202)
        number, method = message["id"], message["method"]
        capabilities = {"tools": {}, "experimental": {CHAINING: {}}}
        info = {"name": "bad", "version": "1"}
        results: JSON = {
            "initialize": {
                "protocolVersion": OLD,
                "capabilities": capabilities,
                "serverInfo": info,
            },
            "tools/list": {"tools": [SECOND]},
            "tools/call": {"content": [], "_meta": directive()},
        }
        line = json.dumps({"jsonrpc": "2.0", "id": number, "result": results[method]})
        if message.get("params", {}).get("name") == "pay":
            line = self.line.replace("$ID", str(number))
        if self.path == "/json":
            return self.answer(200, line.encode(), {"content-type": "application/json"})
        body = "\ufeff" + "".join(f"data: {part}\n" for part in line.split("\n")) + "\n"
        return self.answer(200, body.encode(), {"content-type": "text/event-stream"})


NOTICE = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
GOOD = '{"content":[{"type":"text","text":"Paid."}]}'
REPAIRED = [
    f'{START},"result":{GOOD}}}',
    f'\ufeff{START},"result":{GOOD}}}',
    f'{START},"result":{GOOD.replace("Paid", chr(9) + "Paid")}}}',
    f'{START},"result":{GOOD.replace("Paid", "Paid " + chr(92) + "ud83d")}}}',
    f'{START},"result":{GOOD.replace("Paid", "Paid " + chr(92) + "udc00" + chr(92) + "ud83d")}}}',
    f'{START}.0,"result":{GOOD}}}',
    f'{START},"result":{GOOD},"error":null}}',
    f'{START},"result":{GOOD},"method":"tools/call"}}',
    f'{START},"result":{GOOD},"params":[]}}',
    f'{{"id":$ID,"result":{GOOD}}}',
    f'{{"jsonrpc":"1.0","id":$ID,"result":{GOOD}}}',
    f'{{"jsonrpc":2.0,"id":"$ID","result":{GOOD}}}',
    f'{START},"result":{{"content":[],"structuredContent":{{"n":NaN}}}}}}',
    f'{START},"result":{GOOD},"method":5}}',
    f'{{"method":"tools/call",{START[1:]},"result":{GOOD}}}',
    # Several messages on one line, or in an array.
    f'{NOTICE}{START},"result":{GOOD}}}',
    f'{START},"result":{GOOD}}} {NOTICE}',
    f'{START},"result":{GOOD}}}{{"jsonrpc":"2.0","id":9999,"result":{{}}}}',
    f'[{NOTICE},{START},"result":{GOOD}}}]',
    f'[{START},"result":{GOOD}}}]',
]
NO_RESULT = "not a result"
BAD_IDS = ("0$ID", "$ID.7", "$ID_0", "0x$ID", "9" * 5000, r'"a\x"')
UNREADABLE = [
    (f'{START},"result":"Paid."}}', NO_RESULT),
    (f'{START},"result":null}}', NO_RESULT),
    (f'{START},"result":[]}}', NO_RESULT),
    (f"{START}}}", NO_RESULT),
    (f'{START},"result":{GOOD[:20]}', NO_RESULT),
    (f'{START},"result":{GOOD},}}', NO_RESULT),
    *((f'{{"jsonrpc":"2.0","id":{bad},"result":{GOOD},}}', NO_RESULT) for bad in BAD_IDS),
    (f'{NOTICE}{START},"result":{GOOD},}}', NO_RESULT),
    (f'{START},"result":{{"n":{"9" * 5000}}}}}', NO_RESULT),
    (f'{START},"result":{{"n":{"[" * 300}{"]" * 300}}}}}', NO_RESULT),
    (f"{{'jsonrpc': '2.0', 'id': $ID, 'result': {GOOD}}}", NO_RESULT),
    (f'{{"jsonrpc":"2.0","result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":null,"result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":true,"result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":9999,"result":{GOOD}}}', NO_RESULT),
    ('{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    ('{"jsonrpc":"2.0","error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    ('{"jsonrpc":"2.0","id":9999,"error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    (f'{START},"error":"No tenant."}}', "No tenant."),
    (f'{START},"method":"tools/call","error":"No tenant."}}', "No tenant."),
    (f'{START},"method":"a","error":{{"code":1,"message":"No tenant."}}}}', "No tenant."),
    (f'{START},"error":{{"message":"No tenant."}}}}', "No tenant."),
    (f'{START},"error":{{"code":"E1","message":"No tenant."}}}}', "No tenant."),
    (f'{START},"error":{{"code":-32000,"message":["No tenant."]}}}}', "No tenant."),
    (f'{START},"error":{{"code":-32000,"message":"No tenant.","data":"\\ud83d"}}}}', "No tenant."),
]


@pytest.mark.parametrize("way", ["stdio", "json", "events"])
async def test_a_malformed_response_ends_its_request(way: str, tmp_path: Path, caplog: Any) -> None:
    rows = [*((line, "") for line in REPAIRED), *UNREADABLE]
    with serving(Answering) as origin:
        server: Server = Address(f"{origin}/{way}")
        if way == "stdio":
            server = scripted(tmp_path, answers={"pay": [{"line": line} for line, _ in rows]})
        async with chains(server, caplog) as proxy:
            for line, says in rows:
                Answering.line = line
                result, status = await proxy.run()
                assert status == ("unknown" if says else "made"), line
                assert says in json.dumps(result["content"]), line
                assert "NaN" not in json.dumps(result), line


async def test_answers_on_one_line_end_their_requests(tmp_path: Path, caplog: Any) -> None:
    """Two calls at a time, answered together; a log line that quotes an answer ends neither."""
    quoted = f'DEBUG sending {START},"result":{{}}}}'
    for together in ("$A$B", "[$A,$B]"):
        answer = f'{{"jsonrpc":"2.0","id":$ID,"result":{GOOD}}}'
        both = together.replace("$B", answer)
        both = both.replace("$A", answer.replace("$ID", "$FIRST"))
        answers = {"one": ["waits"], "two": [{"line": f"{quoted}\n{both}"}]}
        (folder := tmp_path / str(len(together))).mkdir()
        server = scripted(folder, answers=answers)
        async with chains(server, caplog) as proxy, anyio.create_task_group() as group:
            group.start_soon(proxy.client.ask, "tools/call", {"name": "one"})
            await anyio.sleep(0.5)
            assert (await proxy.client.ask("tools/call", {"name": "two"}))["content"]


async def test_a_response_without_an_id_ends_no_other_request() -> None:
    """No stream of changes ends, and no request that is answered in time.

    None ends for a second answer, or for the answer to a notification.
    """
    to_client, read = anyio.create_memory_object_stream[SessionMessage](9)
    write, _ = anyio.create_memory_object_stream[SessionMessage](9)

    @asynccontextmanager
    async def transport() -> AsyncIterator[tuple[Any, Any]]:
        yield read, write

    def asked(number: int, method: str) -> SessionMessage:
        return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method=method))

    bad = SessionMessage(
        JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=METHOD_NOT_FOUND, message="No."))
    )
    begun = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
    good = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=2, result={}))
    async with assigned(transport()) as (answers, sent):
        with anyio.fail_after(PATIENCE):
            await sent.send(asked(1, "subscriptions/listen"))
            await sent.send(asked(2, "tools/call"))
            for one in (bad, good):
                await to_client.send(one)
            assert await anext(answers) is good
            await sent.send(begun)
            await sent.send(asked(3, "tools/call"))
            for one in (good, bad):
                await to_client.send(one)
            assert await anext(answers) is good
            with anyio.move_on_after(2 * GRACE):
                pytest.fail(f"nothing is to end: {await anext(answers)}")
            await to_client.send(bad)
            ended = (await anext(answers)).message
    assert (ended.id, ended.error.message) == (3, f"No. {NOT_KNOWN}")


NOISE = [
    *("Starting 1.0", "[jsonrpc] handling tools/call", "jsonrpc: ready", "", "[1]", "null", "42"),
    *('{"level":"info"}', '{"id":1,"level":"info"}', '{"level":1,"error":{"message":"ENOENT"}}'),
    *('{"level":1,"method":"GET","url":"/"}', '{"id":"a","level":1,"method":"GET"}'),
    *('{"id":"a","level":1,"error":"ENOENT"}', '{"level":1,"result":{"rows":2}}'),
    *(r'{"id":"C:\Users\x", level: info}', '{"id": 0123, msg}'),
]


async def test_lines_that_are_no_message_are_ignored_and_logged(
    tmp_path: Path, caplog: Any
) -> None:
    lines = "\n".join([*NOISE, REPAIRED[0]])
    async with chains(scripted(tmp_path, answers={"pay": [{"line": lines}]}), caplog) as proxy:
        assert (await proxy.run())[1] == "made"
        assert all("no MCP message" in warning for warning in proxy.named())
