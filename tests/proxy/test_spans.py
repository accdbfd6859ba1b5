"""One trace holds the agent's call, the proxy, and all calls of a chain."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import getrandbits
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared import _otel
from mcp.types import CallToolResult
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    get_current_span,
    use_span,
)

from tool_chaining import add_tool_chaining, with_next_tool
from tool_chaining_proxy import exchange, upstream
from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.options import Address, ProxyOptions

from ..kit.serving import served
from .wire import proxy_in_memory

pytestmark = pytest.mark.anyio


class Recorded(NonRecordingSpan):
    """A span that keeps its attributes, as one of an OpenTelemetry SDK does."""

    def __init__(self, name: str, kind: SpanKind, context: SpanContext) -> None:
        super().__init__(context)
        self.title = f"{kind.name} {name}"
        self.attributes: dict[str, Any] = {}

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


class Tracer:
    """Starts spans as an OpenTelemetry SDK does, and keeps them."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    @contextmanager
    def start_as_current_span(
        self, name: str, *, kind: SpanKind, context: Any = None, **_: Any
    ) -> Iterator[Recorded]:
        trace = get_current_span(context).get_span_context().trace_id or getrandbits(128)
        own = SpanContext(trace, getrandbits(64), False, TraceFlags(TraceFlags.SAMPLED))
        span = Recorded(name, kind, own)
        self.spans.append(span)
        with use_span(span):
            yield span


async def test_the_calls_of_a_chain_are_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    for module in (_otel, exchange, upstream):
        monkeypatch.setattr(module, "_tracer", tracer)
    server = MCPServer("shop")
    add_tool_chaining(server)

    @server.tool()
    async def cancel() -> CallToolResult:
        return with_next_tool("It has left.", "refund")

    @server.tool()
    async def refund() -> str:
        return "Paid back."

    with served(server.streamable_http_app()) as url:
        options = ProxyOptions(server=Address(url), consent=consent_of("all"))
        async with Client(proxy_in_memory(options), mode="auto") as agent:
            with tracer.start_as_current_span("turn", kind=SpanKind.INTERNAL) as turn:
                await agent.call_tool("cancel")

    trace = turn.get_span_context().trace_id
    told = [
        (span.title, {k.partition(".")[2]: v for k, v in span.attributes.items()})
        for span in tracer.spans
        if span.get_span_context().trace_id == trace and span.title.startswith("SERVER tools/call")
    ]
    chain = told[0][1]["chain_id"]
    assert told == [
        ("SERVER tools/call cancel", {"chain_id": chain, "outcome": "completed"}),
        ("SERVER tools/call cancel", {"chain_id": chain, "level": 1}),
        ("SERVER tools/call refund", {"chain_id": chain, "level": 2}),
    ]
