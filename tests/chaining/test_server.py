"""The server half, on a real server in memory, and in both eras where the wire differs.

What form a directive must have to go out: the vectors, in `tests/conformance/test_vectors.py`.
"""

import json
from datetime import date
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import pytest
from mcp import Client
from mcp.server import Server
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ContentBlock,
    ImageContent,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel

from tool_chaining import CLIENT_EXTENSION, IDENTIFIER, META_KEY, add_tool_chaining, with_next_tool

from .support import connect, errors, texts

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


class Answer(BaseModel):
    """What a form would bring."""

    text: str


GOOD = {"tool": "target", "arguments": {"reason": "locked — 锁", "urgency": 2}}
ITEMS: dict[str, ContentBlock] = {
    "text": TextContent(type="text", text="one"),
    "words": TextContent(type="text", text="x", _meta={IDENTIFIER: {"describes": META_KEY}}),
    "image": ImageContent(type="image", data="AAAA", mime_type="image/png"),
}


def checked(*, strict: bool = False) -> MCPServer[Any]:
    mcp: MCPServer[Any] = MCPServer("checked")
    add_tool_chaining(mcp, strict=strict)

    @mcp.tool()
    async def emit(
        directive: Any = None, error: bool = False, content: list[str] | None = None
    ) -> Any:
        """Return a result with this directive, whatever it is, or with none."""
        meta = {"kept": 1, **({} if directive is None else {META_KEY: directive["value"]})}
        return CallToolResult(
            content=[ITEMS[kind] for kind in (["text", "text"] if content is None else content)],
            structured_content={"n": 1},
            is_error=error,
            _meta=meta,
        )

    @mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def target(reason: str, urgency: int = 0) -> str:
        """Take what a directive names."""
        return f"target: {reason}"

    @mcp.tool(meta={"ui": {"visibility": ["app"]}})
    async def for_people() -> str:
        """Take a click."""
        return "clicked"

    @mcp.tool()
    async def interim() -> Any:
        """Ask something (2026-07-28), and wrongly name a next tool while asking."""
        return InputRequiredResult(request_state="s", _meta={META_KEY: GOOD, "kept": 1})

    return mcp


async def emit(client: Client, value: Any, **more: Any) -> CallToolResult:
    return await client.call_tool("emit", {"directive": {"value": value}, **more})


async def emitted(value: Any, mode: str = "auto", **more: Any) -> CallToolResult:
    """What a client gets that did not declare the extension."""
    async with connect(checked(), mode) as client:
        return await emit(client, value, **more)


@pytest.mark.parametrize("error", [False, True])
async def test_any_other_client_gets_the_directive_and_the_words(mode: str, error: bool) -> None:
    titled = {**GOOD, "title": "Ask an agent — größer"}
    result = await emitted(titled, mode, error=error)

    assert result.meta is not None
    assert (result.meta[META_KEY], result.meta["kept"]) == (titled, 1)
    assert (result.is_error, result.structured_content) == (error, {"n": 1})
    assert len(result.content) == 3
    words = result.content[-1]
    assert isinstance(words, TextContent)
    assert words.annotations is not None
    assert words.annotations.audience == ["assistant"]
    assert words.meta == {IDENTIFIER: {"describes": META_KEY}}
    # The title is for people.
    arguments = json.dumps(GOOD["arguments"], ensure_ascii=False)
    assert words.text == (
        "Next step suggested by this server: unless the result of that call already follows here, "
        f'call the tool "target" once, with exactly these arguments: {arguments}'
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"tool": "targte"}, 'lists no tool "targte". Did you mean "target"?'),
        ({"tool": "for_people"}, "not meant for the model"),
        ({"tool": "target"}, "'reason' is a required property"),
        ({"tool": "target", "args": {}}, 'You sent "args"; the member is "arguments"'),
        ({"tool": "target", "arguments": {"reason": "S3CRET", "urgency": "S3CRET"}}, "urgency"),
        ({**GOOD, "title": "a\u200f"}, "title"),
    ],
)
async def test_a_bad_directive_is_dropped_and_logged(
    value: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await emitted(value)

    assert META_KEY not in (result.meta or {})
    assert (result.meta or {})["kept"] == 1
    assert texts(result) == ["one", "one"]
    assert result.structured_content == {"n": 1}
    assert not result.is_error
    [message] = errors(caplog)
    assert 'of tool "emit": ' in message
    assert says in message
    assert "S3CRET" not in message


@pytest.mark.parametrize(
    "content", [[], ["words"], ["words", "words"], ["words", "text"], ["image"]]
)
async def test_a_directive_needs_content_besides_its_words(
    content: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    result = await emitted(GOOD, content=content)

    sent = META_KEY in (result.meta or {})
    assert sent is ("text" in content or "image" in content)
    assert len(result.content) == len(content) + (1 if sent else 0)
    assert len(errors(caplog)) == (0 if sent else 1)


# 2025-11-25 has no interim results.
async def test_an_interim_result_loses_its_directive(caplog: pytest.LogCaptureFixture) -> None:
    async with connect(checked(), "auto") as client:
        result = await client.session.call_tool("interim", {}, allow_input_required=True)

    assert isinstance(result, InputRequiredResult)
    assert META_KEY not in (result.meta or {})
    assert (result.meta or {})["kept"] == 1
    [message] = errors(caplog)
    assert "interim" in message


async def test_a_strict_server_answers_a_bad_directive_with_an_error(mode: str) -> None:
    async with connect(checked(strict=True), mode) as client:
        with pytest.raises(MCPError, match='Cannot send nextTool "nowhere" of tool "emit": '):
            await emit(client, {"tool": "nowhere", "arguments": {"reason": "S3CRET"}})
        result = await emit(client, GOOD)

    assert (result.meta or {})[META_KEY] == GOOD


def test_a_server_gets_the_extension_once_and_two_servers_each_their_own() -> None:
    mcp = checked()
    with pytest.raises(ValueError, match="'checked' has tool chaining already"):
        add_tool_chaining(mcp)
    assert mcp.middleware[1] is not checked().middleware[1]


def low_level() -> Server[Any]:
    """A server that lists one tool a page."""

    async def list_tools(_: Any, params: Any) -> ListToolsResult:
        names, at = ("emit", "target", "other"), int(params.cursor or 0) if params else 0
        tools = [Tool(name=names[at], input_schema={"type": "object"})]
        return ListToolsResult(tools=tools, next_cursor=str(at + 1) if at < 2 else None)

    async def call_tool(_: Any, params: Any) -> CallToolResult:
        return with_next_tool("Told.", **params.arguments["directive"]["value"])

    server: Server[Any] = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
    add_tool_chaining(server)
    return server


@pytest.mark.parametrize("made", [checked, low_level])
@pytest.mark.parametrize("at", [1, 9], ids=["before", "after"])
async def test_the_list_is_the_one_that_this_caller_sees(
    mode: str, made: Any, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A further middleware hides a tool from this caller, and adds one."""
    sees = True

    async def change(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            kept = [each for each in result["tools"] if sees or each["name"] != "target"]
            added = {"name": "added", "inputSchema": {"type": "object"}}
            result = {**result, "tools": [*kept, added]}
        return result

    server = made()
    server.middleware.insert(at, change)
    async with connect(server, mode, extensions=[CLIENT_EXTENSION]) as client:
        for directive, sees, is_sent in (  # noqa: B007 - the middleware reads it
            (GOOD, True, True),
            ({"tool": "added"}, True, True),
            (GOOD, False, False),
        ):
            result = await emit(client, directive)
            assert (META_KEY in (result.meta or {})) is is_sent
    assert 'lists no tool "target"' in caplog.text


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        *(({"tool": tool}, "nextTool.tool: must") for tool in ("", None, 5)),
        ({"arguments": {"n": float("inf")}}, "arguments.n: a number that no IEEE double"),
        ({"arguments": {"seen": [object()]}}, "Unable to serialize unknown type"),
        ({"arguments": {"name": "\ud83d"}}, "surrogate"),
        ({"title": "two\nlines"}, "title: must be plain text of 1 to 200 characters on one line"),
        ({"title": ""}, "title: must be plain text"),
        ({"title": "x" * 201}, "title: must be plain text"),
    ],
)
def test_a_directive_that_cannot_be_sent_costs_only_itself(
    directive: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = with_next_tool("Paid.", **{"tool": "target", **directive})
    assert result.meta is None
    assert texts(result) == ["Paid."]
    assert problem in caplog.text


def test_python_values_become_json_in_arguments() -> None:
    class Address(BaseModel):
        city: str

    id_ = UUID(int=1)
    values = {"on": date(2026, 1, 2), "sum": Decimal("1.5"), "id": id_, "pair": (1, 2)}
    result = with_next_tool("Paid.", "target", {**values, "to": Address(city="Köln")})
    assert (result.meta or {})[META_KEY]["arguments"] == {
        **{"on": "2026-01-02", "sum": "1.5", "id": str(id_), "pair": [1, 2]},
        "to": {"city": "Köln"},
    }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_has_begun_refuses_nothing(mode: str, is_async: bool) -> None:
    """A nested call may raise a refusal. The client must not take it for "not made" (TC-S-36)."""
    mcp = checked()

    @mcp.tool()
    async def pay() -> str:
        """Pay."""
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the nested call was refused")

    @mcp.tool()
    def pay_in_a_thread() -> str:
        """Pay."""
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the nested call was refused")

    def needs_a_form() -> Elicit[Answer]:
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "no form")

    @mcp.tool()
    async def ask(answer: Annotated[Answer, Resolve(needs_a_form)]) -> str:
        """Ask."""
        return "never"

    async with connect(mcp, mode) as client:
        failed = await client.call_tool("pay" if is_async else "pay_in_a_thread")
        assert failed.is_error
        assert texts(failed) == ["the nested call was refused"]
        with pytest.raises(MCPError, match="no form"):
            await client.call_tool("ask")
