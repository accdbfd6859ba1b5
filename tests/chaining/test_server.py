"""The server half, on a real server and with real clients, on every transport and in both eras."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    TextContent,
    jsonrpc_message_adapter,
)

from banking_server.chaining import (
    CLIENT_EXTENSION,
    IDENTIFIER,
    META_KEY,
    SETTINGS,
    ToolChaining,
    call_tool_with_chaining,
    with_next_tool,
)

from ..kit.words import MODES
from .chain_server import checked
from .support import MODERN, Peer, connect, http_server

pytestmark = pytest.mark.anyio

IN_MEMORY = [("memory", mode) for mode in MODES]
GOOD = {"tool": "target", "arguments": {"reason": "locked — 锁", "urgency": 2}}
BAD = [
    pytest.param(None, "must be an object", id="null"),
    pytest.param("target", "must be an object", id="text"),
    pytest.param([GOOD], "must be an object", id="list"),
    pytest.param({}, "tool", id="empty"),
    pytest.param({"tool": ""}, "tool", id="no-name"),
    pytest.param({"tool": 5, "arguments": {"reason": "x"}}, "tool", id="number"),
    pytest.param({"tool": "target", "arguments": None}, "arguments", id="null-arguments"),
    pytest.param({"tool": "target", "arguments": ["x"]}, "arguments", id="list-of-arguments"),
    pytest.param({"name": "target", "arguments": {"reason": "x"}}, "'name'", id="alias"),
    pytest.param({**GOOD, "name": "target"}, "'name'", id="equal-alias"),
    pytest.param({**GOOD, "name": "other"}, "differ", id="conflicting-alias"),
    pytest.param({"tool": "nowhere", "arguments": {}}, "'nowhere'", id="unlisted"),
    pytest.param({"tool": "Target", "arguments": {"reason": "x"}}, "'Target'", id="other-case"),
    pytest.param({"tool": "target"}, "'reason' is a required property", id="missing-argument"),
    pytest.param({"tool": "target", "arguments": {"reason": 5}}, "arguments.reason", id="type"),
    pytest.param(
        {"tool": "target", "arguments": {"reason": "x", "urgent": "S3CRET"}},
        "no argument urgent",
        id="undeclared-argument",
    ),
    pytest.param({"tool": "for_people"}, "not meant for the model", id="hidden-tool"),
    *(
        pytest.param({**GOOD, "title": title}, "title", id=f"title-{n}")
        for n, title in enumerate(["", "x" * 201, 5, None, "two\nlines", "\x1b[2J", "a\u2028b"])
    ),
    *(
        pytest.param(
            {"tool": "target", "arguments": {"reason": "x", "urgency": n}}, "number", id=str(n)
        )
        for n in (2**53 + 1, 2**60, 10**400)
    ),
    pytest.param(
        {"tool": "target", "arguments": {"reason": "S3CRET", "urgency": "S3CRET"}},
        "arguments.urgency",
        id="second-argument",
    ),
]


async def emit(peer: Peer, value: Any, **more: Any) -> CallToolResult:
    return await peer.client.call_tool("emit", {"directive": {"value": value}, **more})


def texts(result: CallToolResult) -> list[str]:
    assert all(isinstance(block, TextContent) for block in result.content)
    return [block.text for block in result.content if isinstance(block, TextContent)]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "banking_server.chaining.outgoing" and record.levelno == logging.ERROR
    ]


async def test_members_that_a_directive_does_not_have_stay_behind(declared: Peer) -> None:
    result = await emit(declared, {**GOOD, "parameters": {"reason": "x"}, "note": "x"})
    assert (result.meta or {})[META_KEY] == GOOD


async def test_a_declared_client_gets_the_directive_and_no_words(declared: Peer) -> None:
    result = await emit(declared, GOOD)

    assert result.meta is not None
    assert result.meta[META_KEY] == GOOD
    assert result.meta["kept"] == {"by": "server"}
    assert texts(result) == ["one", "two"]
    assert result.structured_content == {"n": 1}


async def test_any_other_client_gets_the_directive_and_the_words(undeclared: Peer) -> None:
    result = await emit(undeclared, GOOD)

    assert result.meta is not None
    assert result.meta[META_KEY] == GOOD
    assert result.meta["kept"] == {"by": "server"}
    assert result.structured_content == {"n": 1}
    assert texts(result)[:2] == ["one", "two"]
    assert len(result.content) == 3
    words = result.content[-1]
    assert isinstance(words, TextContent)
    assert words.annotations is not None
    assert words.annotations.audience == ["assistant"]
    assert words.meta == {IDENTIFIER: {"describes": META_KEY}}
    arguments = json.dumps(GOOD["arguments"], ensure_ascii=False)
    assert words.text == (
        "Next step suggested by this server: unless the result of that call already follows here, "
        f'call the tool "target" once, with exactly these arguments: {arguments}'
    )


@pytest.mark.parametrize(
    ("arguments", "meta"), [({}, {"by": "server"}), ({"bare": True}, None)], ids=["meta", "bare"]
)
async def test_a_result_without_directive_is_left_alone(
    undeclared: Peer, arguments: dict[str, Any], meta: Any
) -> None:
    result = await undeclared.client.call_tool("emit", arguments)

    assert texts(result) == ["one", "two"]
    assert (result.meta or {}).get("kept") == meta
    assert META_KEY not in (result.meta or {})


async def test_an_error_result_keeps_its_directive(declared: Peer) -> None:
    result = await emit(declared, GOOD, error=True)

    assert result.is_error
    assert (result.meta or {})[META_KEY] == GOOD


async def test_an_error_result_gets_the_words_too(undeclared: Peer) -> None:
    result = await emit(undeclared, GOOD, error=True)

    assert result.is_error
    assert (result.meta or {})[META_KEY] == GOOD
    assert len(result.content) == 3


# What is wrong with a directive has nothing to do with the transport.
@pytest.mark.parametrize("declared", IN_MEMORY, indirect=True, ids="-".join)
@pytest.mark.parametrize(("value", "says"), BAD)
async def test_a_bad_directive_is_dropped_and_logged(
    declared: Peer, value: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await emit(declared, value)

    assert META_KEY not in (result.meta or {})
    assert (result.meta or {})["kept"] == {"by": "server"}
    assert texts(result) == ["one", "two"]
    assert result.structured_content == {"n": 1}
    assert not result.is_error
    [message] = errors(caplog)
    assert "'emit'" in message
    assert says in message
    assert "S3CRET" not in message


async def test_a_title_goes_out_and_not_into_the_words(undeclared: Peer) -> None:
    titled = {**GOOD, "title": "Ask an agent — größer"}
    result = await emit(undeclared, titled)

    assert (result.meta or {})[META_KEY] == titled
    assert "Ask an agent" not in " ".join(texts(result))


@pytest.mark.parametrize("undeclared", IN_MEMORY, indirect=True, ids="-".join)
@pytest.mark.parametrize(
    "content", [[], ["words"], ["words", "words"], ["words", "text"], ["image"]]
)
async def test_a_directive_needs_content_besides_its_words(
    undeclared: Peer, content: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    result = await emit(undeclared, GOOD, content=content)

    sent = META_KEY in (result.meta or {})
    assert sent is ("text" in content or "image" in content)
    assert len(result.content) == len(content) + (1 if sent else 0)
    assert len(errors(caplog)) == (0 if sent else 1)


TEXT = {"type": "text", "text": "one"}


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ({"content": [TEXT], "_meta": {META_KEY: GOOD, "by": 1}, "more": {"x": 1}}, True),
        ({"content": [TEXT], "resultType": "complete", "_meta": {META_KEY: GOOD}}, True),
        ({"content": [], "_meta": {META_KEY: GOOD}}, False),
        ({"content": [TEXT], "_meta": {META_KEY: {"tool": "nowhere"}, "by": 1}}, False),
        ({"content": [TEXT], "structuredContent": {"n": 1}, "_meta": {META_KEY: 5}}, False),
        ({"content": [TEXT], "resultType": "task", "_meta": {META_KEY: GOOD}}, False),
        ({"content": [TEXT], "task": {"taskId": "t"}, "_meta": {META_KEY: GOOD}}, False),
        ({"content": [TEXT]}, None),
        ({"content": [TEXT], "_meta": "x"}, None),
    ],
)
async def test_what_another_extension_answers_is_checked_too(
    answer: Any, kept: bool | None
) -> None:
    chaining = ToolChaining()
    mcp: MCPServer[Any] = MCPServer("two", extensions=[chaining])
    chaining.bind(mcp)
    mcp.add_tool(target)
    session = SimpleNamespace(client_capabilities=None)
    context: Any = SimpleNamespace(protocol_version="2026-07-28", session=session)

    async def call_next(_: Any) -> Any:
        return answer

    params = CallToolRequestParams(name="emit")
    went_out: Any = await chaining.intercept_tool_call(params, context, call_next)

    if kept is None:
        assert went_out is answer
        return
    assert (META_KEY in went_out.get("_meta", {})) is kept
    others = {key: value for key, value in answer.items() if key not in ("_meta", "content")}
    assert {**went_out, **others} == went_out
    assert ("by" in went_out.get("_meta", {})) is ("by" in answer["_meta"])
    said = went_out.get("content", [])
    assert len(said) == len(answer.get("content", [])) + (1 if kept else 0)


async def target(reason: str, urgency: int = 0) -> str:
    """Take what a directive names."""
    return reason


async def test_nobody_is_told_a_bad_directive_in_words(undeclared: Peer) -> None:
    result = await emit(undeclared, {"tool": "nowhere"}, error=True)

    assert result.is_error
    assert META_KEY not in (result.meta or {})
    assert texts(result) == ["one", "two"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_dropped_directive_leaves_no_copy_of_itself(mode: str) -> None:
    nowhere = {"tool": "nowhere", "arguments": {}}
    chaining = ToolChaining()
    mcp: MCPServer[Any] = MCPServer("three", extensions=[chaining])
    chaining.bind(mcp)

    @mcp.tool()
    async def emit() -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text="one")],
            structured_content={"n": 1, "nextStep": nowhere},
            _meta={META_KEY: nowhere},
        )

    async with connect(mcp, "memory", mode) as peer:
        result = await peer.client.call_tool("emit", {})

    assert result.structured_content == {"n": 1}
    assert "nowhere" not in str(result)


async def test_no_meta_is_left_behind(declared: Peer) -> None:
    result = await emit(declared, {"tool": "nowhere"}, bare=True)

    assert [key for key in result.meta or {} if "/" not in key] == []


async def test_a_bad_directive_does_not_harm_the_next_good_one(declared: Peer) -> None:
    await emit(declared, {"tool": "nowhere"})
    result = await emit(declared, GOOD)

    assert (result.meta or {})[META_KEY] == GOOD


# 2025-11-25 has no interim results.
@pytest.mark.parametrize("declared", MODERN, indirect=True, ids="-".join)
async def test_an_interim_result_loses_its_directive(
    declared: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    result = await declared.client.session.call_tool("interim", {}, allow_input_required=True)

    assert isinstance(result, InputRequiredResult)
    assert result.input_requests is not None
    assert list(result.input_requests) == ["q"]
    assert META_KEY not in (result.meta or {})
    assert (result.meta or {})["kept"] == 1
    if declared.transport != "stdio":  # whose log is in another process
        [message] = errors(caplog)
        assert "interim" in message


async def test_the_extension_is_advertised(declared: Peer) -> None:
    capabilities = declared.client.server_capabilities

    assert capabilities.extensions is not None
    assert capabilities.extensions[IDENTIFIER] == SETTINGS == {"version": 1}
    if declared.mode == "legacy":
        assert capabilities.experimental is not None
        assert capabilities.experimental[IDENTIFIER] == SETTINGS
    assert capabilities.tools is not None


async def test_a_client_that_follows_drops_the_words(undeclared: Peer) -> None:
    chain = await call_tool_with_chaining(undeclared.client, "emit", {"directive": {"value": GOOD}})

    assert [step.tool for step in chain.steps] == ["emit", "target"]
    assert texts(chain.merged())[:-1] == ["one", "two", "target: locked — 锁"]
    assert len(chain.steps[0].result.content) == 3  # the step itself is as it was received


async def test_the_words_stay_where_the_directive_was_not_followed(undeclared: Peer) -> None:
    chain = await call_tool_with_chaining(
        undeclared.client, "emit", {"directive": {"value": GOOD}}, limit=1
    )

    assert len(chain.content) == 3
    assert '"target"' in chain.content[-1].text  # type: ignore[union-attr]


async def test_the_list_is_the_live_one(caplog: pytest.LogCaptureFixture) -> None:
    mcp = checked()

    async def later(n: int) -> str:
        return str(n)

    late = {"tool": "later", "arguments": {"n": 1}}
    async with connect(mcp, "memory", "auto") as peer:
        before = await emit(peer, late)
        mcp.add_tool(later)
        during = await emit(peer, late)
        mcp.remove_tool("later")
        after = await emit(peer, late)

    assert [(r.meta or {}).get(META_KEY) for r in (before, during, after)] == [None, late, None]
    assert len(errors(caplog)) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_over_stateless_http_a_client_of_the_old_era_cannot_be_known(mode: str) -> None:
    with http_server(checked(), stateless_http=True) as url:
        async with connect(url, "http", mode, extensions=[CLIENT_EXTENSION]) as peer:
            result = await emit(peer, GOOD)

    assert (result.meta or {})[META_KEY] == GOOD
    assert len(result.content) == (3 if mode == "legacy" else 2)


@pytest.mark.parametrize("settings", [{"version": 1}, {"version": 2}, {"version": 0}], ids=str)
@pytest.mark.parametrize("place", ["extensions", "experimental", "elsewhere"])
async def test_a_declaration_counts_in_both_places_of_the_old_era(
    place: str, settings: dict[str, Any]
) -> None:
    async def ask(method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        await write.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
        answer = await read.receive()
        assert isinstance(answer, SessionMessage)
        return answer.message.model_dump(by_alias=True)["result"]

    async with InMemoryTransport(checked()) as (read, write):
        with anyio.fail_after(30):
            welcome = await ask(
                "initialize",
                protocolVersion="2025-11-25",
                capabilities={place: {IDENTIFIER: settings}},
                clientInfo={"name": "raw", "version": "0"},
            )
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await write.send(SessionMessage(jsonrpc_message_adapter.validate_python(ready)))
            result = await ask("tools/call", name="emit", arguments={"directive": {"value": GOOD}})

    for member in ("extensions", "experimental"):
        assert welcome["capabilities"][member][IDENTIFIER] == SETTINGS
    assert result["_meta"][META_KEY] == GOOD
    declared = place != "elsewhere" and settings["version"] > 0
    assert len(result["content"]) == (2 if declared else 3)


@pytest.mark.parametrize("mode", MODES)
async def test_an_extension_that_was_never_bound_is_not_silent(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    mcp: MCPServer[Any] = MCPServer("unbound", extensions=[ToolChaining()])

    @mcp.tool()
    async def t() -> str:
        ran.append("t")
        return "done"

    async with connect(mcp, "memory", mode) as peer:
        with pytest.raises(MCPError):
            await peer.client.call_tool("t", {})

    assert ran == []
    assert "bind(mcp)" in caplog.text


async def test_the_reason_it_gives() -> None:
    context: Any = None

    async def call_next(_: ServerRequestContext[Any, Any]) -> CallToolResult:
        raise AssertionError("the tool must not run")

    with pytest.raises(RuntimeError, match=r"bind\(mcp\)"):
        await ToolChaining().intercept_tool_call(
            CallToolRequestParams(name="t"), context, call_next
        )


@pytest.mark.parametrize("mode", MODES)
async def test_at_the_call_site(mode: str) -> None:
    chaining = ToolChaining()
    mcp: MCPServer[Any] = MCPServer("site", extensions=[chaining])
    chaining.bind(mcp)

    @mcp.tool()
    async def first() -> CallToolResult:
        done = CallToolResult(content=[TextContent(type="text", text="first")])
        return with_next_tool(done, "second", {"n": 1})

    @mcp.tool()
    async def second(n: int) -> str:
        return f"second {n}"

    async with connect(mcp, "memory", mode, extensions=[CLIENT_EXTENSION]) as peer:
        result = await peer.client.call_tool("first", {})

    assert (result.meta or {})[META_KEY] == {"tool": "second", "arguments": {"n": 1}}
