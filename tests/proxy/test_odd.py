"""Among real servers: one wrong member costs one thing, and every request gets its answer.

Each row has one thing wrong: in a list, a result, a greeting or a line. The client reads plain
JSON.
"""

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.options import Address, ProxyOptions, Server

from ..kit.command import PATIENCE
from ..kit.serving import Handler, serving
from .scripted import Shop, said
from .wire import CHAINING, JSON, OLD, proxy_in_a_thread, wire

pytestmark = pytest.mark.anyio

READS = {"readOnlyHint": True}
SECOND = {"name": "pay", "inputSchema": {"type": "object"}, "annotations": READS}


def directive(**members: Any) -> JSON:
    return {"nextTool": {"tool": "pay", "arguments": {}, **members}}


async def chain(folder: Path, caplog: Any, **script: Any) -> tuple[JSON, str, list[str]]:
    """Return the result of a chain, what became of its second call, and what the operator reads."""
    answers = {"prepare": [said("Prepared.", "pay")], "pay": [said("Paid.")]}
    answers |= script.pop("answers", {})
    tools = [{**SECOND, "name": "prepare"}, *script.pop("tools", [SECOND])]
    shop = Shop(folder, answers=answers, tools=[tools], **script)
    return await chained(shop.options().server, caplog)


async def chained(server: Server, caplog: Any) -> tuple[JSON, str, list[str]]:
    options = ProxyOptions(server, consent_of(None, trust_hints=True))
    caplog.set_level(logging.WARNING, "tool_chaining")
    with anyio.fail_after(PATIENCE), proxy_in_a_thread(options) as url:
        async with wire(url, OLD, capabilities={}) as client:
            result = await client.ask("tools/call", {"name": "prepare"})
    meta = result.get("_meta")
    made: JSON = {"outcome": "not followed", "followUps": []}
    made = meta.get(CHAINING, made) if isinstance(meta, dict) else made
    status = "".join(one["status"] for one in made["followUps"]) or made["outcome"]
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("tool_chaining")]
    return result, status, ours


OTHER = {**SECOND, "name": "other"}

LISTS: list[tuple[JSON, str]] = [
    ({"tools": [SECOND, entry]}, named)
    for entry, named in [
        ({**OTHER, "annotations": []}, ""),
        ({**OTHER, "annotations": None}, ""),
        ({**OTHER, "annotations": "safe"}, "annotations of the tool"),
        ({**OTHER, "annotations": {"readOnlyHint": "sometimes"}}, "a hint of the tool"),
        ({**OTHER, "inputSchema": None}, ""),
        ({"name": "other"}, ""),
        ({**OTHER, "inputSchema": []}, ""),
        ({**OTHER, "inputSchema": "object"}, ""),
        ({**OTHER, "description": 5}, ""),
        ({**OTHER, "title": {}}, ""),
        ({**OTHER, "_meta": []}, ""),
        ({**OTHER, "_meta": {"ui": "app"}}, ""),
        ({**OTHER, "outputSchema": "x"}, ""),
        ({**OTHER, "icons": {}}, ""),
        ({**OTHER, "execution": []}, ""),
        ({"inputSchema": {}}, "has no name"),
        ({**OTHER, "name": None}, "has no name"),
        ({**OTHER, "name": 7}, "has no name"),
        ({**OTHER, "name": ""}, "has no name"),
        (None, "has no name"),
        ("other", "has no name"),
        ([], "has no name"),
    ]
]
NEXT: list[tuple[JSON, str]] = [
    ({"tools": [{**SECOND, **odd}]}, "")
    for odd in [
        {"inputSchema": None},
        {"inputSchema": []},
        {"inputSchema": 5},
        {"description": 5},
        {"title": []},
        {"outputSchema": "x"},
        {"_meta": []},
        {"_meta": {"ui": None}},
        {"icons": None},
    ]
]
PAGES: list[tuple[JSON, str]] = [
    ({"page": page}, "")
    for page in [
        {"nextCursor": None},
        {"nextCursor": ""},
        {"nextCursor": 5},
        {"nextCursor": {}},
        {"ttlMs": "soon"},
        {"ttlMs": None},
        {"_meta": []},
        {"resultType": 5},
    ]
]
RESULTS: list[tuple[JSON, str]] = [
    (
        {"answers": {"pay": [{"result": {"content": [{"type": "text", "text": "Paid."}], **odd}}]}},
        "",
    )
    for odd in [
        {"isError": None},
        {"isError": "no"},
        {"isError": 0},
        {"_meta": []},
        {"_meta": None},
        {"_meta": "x"},
        {"structuredContent": []},
        {"structuredContent": "x"},
        {"structuredContent": None},
        {"content": None},
        {"content": "Paid."},
        {"content": {}},
        {"content": [5]},
        {"content": [None]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": 5}]},
        {"content": [{"type": "image"}]},
        {"content": [{"text": "Paid."}]},
        {"content": [{"type": "text", "text": "Paid.", "annotations": []}]},
        {"content": [{"type": "text", "text": "Paid.", "annotations": {"audience": "user"}}]},
        {"content": [{"type": "text", "text": "Paid.", "annotations": {"audience": [5]}}]},
        {"content": [{"type": "resource", "resource": None}]},
    ]
]
FIRSTS: list[tuple[JSON, str]] = [
    ({"answers": {"prepare": [{"result": {"content": [], "_meta": directive(), **odd}}]}}, "")
    for odd in [
        {"isError": None},
        {"isError": []},
        {"content": None},
        {"structuredContent": "x"},
        {"structuredContent": None},
        {"_meta": directive(title=5)},
        {"_meta": directive(title=None)},
        {"_meta": {**directive(), "progressToken": []}},
    ]
]


@pytest.mark.parametrize(("script", "named"), [*LISTS, *NEXT, *PAGES, *RESULTS, *FIRSTS], ids=str)
async def test_a_chain_runs(script: JSON, named: str, tmp_path: Path, caplog: Any) -> None:
    result, status, warnings = await chain(tmp_path, caplog, **script)
    print(result)
    assert status == "made"
    assert (len(warnings) == 1 and named in warnings[0]) if named else warnings == []


DECIDING: list[tuple[JSON, str]] = [
    *[
        ({"tools": [{**SECOND, **odd}]}, "not_made")
        for odd in [
            {"annotations": None},
            {"annotations": []},
            {"annotations": "safe"},
            {"annotations": {"readOnlyHint": "true"}},
            {"annotations": {"readOnlyHint": 1}},
            {"annotations": {"destructiveHint": None, "openWorldHint": False}},
            {"annotations": {"destructiveHint": 0, "openWorldHint": False}},
            {"_meta": {"ui": {"visibility": "app"}}},
            {"_meta": {"ui": {"visibility": []}}},
            {"_meta": {"ui": {"visibility": None}}},
            {"_meta": {"ui": {"visibility": {"model": True}}}},
        ]
    ],
    *[
        ({"answers": {"prepare": [{"result": {"content": [], "_meta": meta}}]}}, status)
        for meta, status in [
            ({"nextTool": None}, "malformed_directive"),
            ({"nextTool": []}, "malformed_directive"),
            ({"nextTool": "pay"}, "malformed_directive"),
            (directive(tool=5), "malformed_directive"),
            (directive(tool=""), "malformed_directive"),
            (directive(arguments=[]), "malformed_directive"),
            (directive(arguments=None), "malformed_directive"),
            ([directive()], "not followed"),
        ]
    ],
    *[
        ({"greeting": {"capabilities": capabilities}}, "not followed")
        for capabilities in [
            None,
            [],
            {"tools": {}, "extensions": []},
            {"tools": {}, "experimental": {CHAINING: []}},
            {"tools": {}, "experimental": {CHAINING: None}},
            {"tools": {}, "experimental": {CHAINING: {"version": "1"}}},
            {"tools": {}, "experimental": CHAINING},
        ]
    ],
    ({"page": {"tools": None}}, "not_made"),
    ({"page": {"tools": {}}}, "not_made"),
]


@pytest.mark.parametrize(("script", "status"), DECIDING, ids=str)
async def test_what_decides_is_read_carefully(
    script: JSON, status: str, tmp_path: Path, caplog: Any
) -> None:
    result, became, warnings = await chain(tmp_path, caplog, **script)
    print(became, result, warnings)
    assert became == status


class Answering(Handler):
    """A server over HTTP whose follow-up call is answered with a line, alone or as an event."""

    line = ""

    def do_POST(self) -> None:
        message = self.message()
        if "id" not in message:
            return self.answer(202)
        number, method = message["id"], message["method"]
        capabilities = {"tools": {}, "experimental": {CHAINING: {}}}
        info = {"name": "odd", "version": "1"}
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
        body = "".join(f"data: {part}\n" for part in line.split("\n")) + "\n"
        return self.answer(200, body.encode(), {"content-type": "text/event-stream"})


GOOD = '{"content":[{"type":"text","text":"Paid."}]}'
START = '{"jsonrpc":"2.0","id":$ID'
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
]
NO_RESULT = "not a result"
UNREADABLE = [
    (f'{START},"result":"Paid."}}', NO_RESULT),
    (f'{START},"result":null}}', NO_RESULT),
    (f'{START},"result":[]}}', NO_RESULT),
    (f"{START}}}", NO_RESULT),
    (f'{START},"result":{GOOD[:20]}', NO_RESULT),
    (f'{START},"result":{GOOD},}}', NO_RESULT),
    (f'{START},"result":{{"n":{"9" * 5000}}}}}', NO_RESULT),
    (f'{START},"result":{{"n":{"[" * 300}{"]" * 300}}}}}', NO_RESULT),
    (f'[{START},"result":{GOOD}}}]', NO_RESULT),
    (f'INFO {START},"result":{GOOD}}}', NO_RESULT),
    (f"{{'jsonrpc': '2.0', 'id': $ID, 'result': {GOOD}}}", NO_RESULT),
    (f'{{"jsonrpc":"2.0","result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":null,"result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":true,"result":{GOOD}}}', NO_RESULT),
    (f'{{"jsonrpc":"2.0","id":99,"result":{GOOD}}}', NO_RESULT),
    ('{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    ('{"jsonrpc":"2.0","error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    ('{"jsonrpc":"2.0","id":99,"error":{"code":-32020,"message":"No tenant."}}', "No tenant."),
    (f'{START},"error":"No tenant."}}', "No tenant."),
    (f'{START},"error":{{"message":"No tenant."}}}}', "No tenant."),
    (f'{START},"error":{{"code":"E1","message":"No tenant."}}}}', "No tenant."),
    (f'{START},"error":{{"code":-32000,"message":["No tenant."]}}}}', "No tenant."),
    (f'{START},"error":{{"code":-32000,"message":"No tenant.","data":"\\ud83d"}}}}', "No tenant."),
]


@pytest.mark.parametrize("way", ["stdio", "json", "events"])
@pytest.mark.parametrize(
    ("line", "says"), [*((line, "") for line in REPAIRED), *UNREADABLE], ids=ascii
)
async def test_an_odd_answer_ends_its_request(
    line: str, says: str, way: str, tmp_path: Path, caplog: Any
) -> None:
    if way == "stdio":
        result, status, _ = await chain(tmp_path, caplog, answers={"pay": [{"line": line}]})
    else:
        Answering.line = line
        with serving(Answering) as origin:
            result, status, _ = await chained(Address(f"{origin}/{way}"), caplog)
    assert status == ("unknown" if says else "made")
    assert says in json.dumps(result["content"])


async def test_noise_is_ignored_and_named_once(tmp_path: Path, caplog: Any) -> None:
    noise = ["Starting 1.0", "", "[1]", "null", "42", '{"level":"info"}', '{"id":1,"level":"info"}']
    lines = "\n".join([*noise, REPAIRED[0]])
    _, status, warnings = await chain(tmp_path, caplog, answers={"pay": [{"line": lines}]})
    assert status == "made"
    assert all("no MCP message" in warning for warning in warnings)
