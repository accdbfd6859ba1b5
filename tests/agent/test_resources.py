"""What servers offer to know: how much of it a model is told, and when it is read."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server import Server
from mcp.types import (
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
)

from banking_server.agent import Agent, Endpoint, RunOutcome, Toolbox
from banking_server.agent import resources as module
from banking_server.agent.resources import MAX_ABOUT, MAX_KNOWN, MAX_RESOURCE, MAX_RESOURCES
from banking_server.text import cut

from ..kit.command import PATIENCE
from ..kit.model import call, scripted_model
from .support import Consent, settings

pytestmark = pytest.mark.anyio

Read = Callable[[str], Any]


def server(uris: Sequence[str] | None, text: Read, about: str = "Things.") -> Server[Any]:
    """A server with these resources, and a tool that changes something.

    With None it never says which resources it has, and it never ends a text that is None.
    """

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="change", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="changed")])

    async def list_resources(ctx: Any, params: Any) -> ListResourcesResult:
        if uris is None:
            await anyio.sleep_forever()
        if not uris:
            raise MCPError(code=-32603, message="not today")
        return ListResourcesResult(
            resources=[Resource(name=uri, uri=uri, description=about) for uri in uris]
        )

    async def read_resource(ctx: Any, params: Any) -> ReadResourceResult:
        uri = str(params.uri)
        came = text(uri)
        if came is None:
            await anyio.sleep_forever()
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=came)])

    return Server(
        "things",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


async def read(one: Server[Any]) -> dict[str, str]:
    """Return what a model is told of each resource of a server."""
    async with Client(one) as client:
        return {known.uri: known.text for known in (await Toolbox.gather({"s": client})).known}


async def test_no_more_is_told_than_a_model_can_take() -> None:
    many = [f"test://{n}" for n in range(MAX_RESOURCES + 5)]
    asked: list[str] = []
    told = await read(server(many, lambda uri: asked.append(uri) or f"about {uri}"))
    assert list(told) == asked == many[:MAX_RESOURCES]

    async with Client(server(many, lambda uri: "x" * 10**5, "y" * 1000)) as client:
        known = (await Toolbox.gather({"s": client})).known
    assert [one.text for one in known] == [cut("x" * 10**5, MAX_RESOURCE)]
    assert known[0].about == "y" * (MAX_ABOUT - 1) + "\u2026"
    assert sum(len(one.in_words()) for one in known) <= MAX_KNOWN


async def test_each_server_has_its_share_and_what_is_left_out_is_told() -> None:
    long = server([f"test://{n}" for n in range(3)], lambda uri: "x" * 7_000)
    many = server([f"test://{n}" for n in range(MAX_RESOURCES + 2)], lambda uri: uri)
    with scripted_model(["Hello."]) as model:
        async with (
            Endpoint(settings(model.url)) as endpoint,
            Client(long) as one,
            Client(many) as two,
        ):
            toolbox = await Toolbox.gather({"long": one, "many": two})
            await Agent(endpoint, toolbox).ask("Hi")
    assert Counter(known.server for known in toolbox.known) == {"long": 2, "many": MAX_RESOURCES}
    told = model.requests[0]["messages"][0]["content"]
    assert "Of what the server 'long' offers to know, 1 more is not told." in told
    assert "Of what the server 'many' offers to know, 2 more is not told." in told


async def test_what_cannot_be_read_is_left_out() -> None:
    def text(uri: str) -> str:
        if uri == "test://bad":
            raise MCPError(code=-32603, message="no")
        return "fine" if uri == "test://good" else ""

    assert await read(server(["test://bad", "test://good", "test://empty"], text)) == {
        "test://good": "fine"
    }
    assert await read(server([], text)) == {}
    deep = '{"a":' * 600 + "1" + "}" * 600
    assert await read(server(["test://deep"], lambda uri: deep)) == {"test://deep": deep}


async def test_a_server_that_never_ends_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_TIME", 0.5)
    asked: list[str] = []

    def text(uri: str) -> str | None:
        asked.append(uri)
        return "fine" if uri == "test://1" else None

    with anyio.fail_after(PATIENCE):
        told = await read(server(["test://1", "test://2", "test://3"], text))
        assert (told, asked) == ({"test://1": "fine"}, ["test://1", "test://2"])
        assert await read(server(None, text)) == {}


async def test_it_is_read_again_when_a_call_may_have_changed_it() -> None:
    texts = iter(["one", "two", "", "four"])
    things = server(["test://1"], lambda uri: next(texts))
    ask = [call("change"), "Changed."]
    with scripted_model([*ask, "Yes.", *ask, *ask, "Yes."]) as model:
        async with Endpoint(settings(model.url)) as endpoint, Client(things) as client:
            agent = Agent(endpoint, await Toolbox.gather({"s": client}), consent=Consent(True))
            for request in ("Change.", "Sure?", "Change.", "Change.", "Sure?"):
                await agent.ask(request)
    told = [request["messages"][0]["content"] for request in model.requests]
    assert ["(test://1)" in words for words in told] == [True] * 5 + [False, False, True]
    assert [words[-3:] for words in told[:5]] == ["one", "one", "two", "two", "two"]
    # What could not be read once is read when it can be.
    assert told[-1].endswith("(test://1):\nfour")


async def test_a_request_that_waits_for_it_can_be_stopped() -> None:
    texts = iter(["one", None, "three"])
    waiting = anyio.Event()

    def text(uri: str) -> str | None:
        came = next(texts)
        if came is None:
            waiting.set()
        return came

    with scripted_model([call("change"), "Changed.", "Yes."]) as model:
        async with (
            Endpoint(settings(model.url)) as endpoint,
            Client(server(["test://1"], text)) as client,
        ):
            agent = Agent(endpoint, await Toolbox.gather({"s": client}), consent=Consent(True))
            await agent.ask("Change.")

            async def stop() -> None:
                await waiting.wait()
                agent.stop()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop)
                run = await agent.ask("Sure?")
            assert run.outcome is RunOutcome.STOPPED
            assert (await agent.ask("Sure?")).answer == "Yes."
    assert model.requests[-1]["messages"][0]["content"].endswith("three")
