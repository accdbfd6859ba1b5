"""The rules of following, against a client that is all script: random chains, and time."""

from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

from banking_server.chaining import (
    IDENTIFIER,
    META_KEY,
    ChainFailed,
    FollowNonDestructive,
    Outcome,
    Step,
    call_tool_with_chaining,
)

from .support import FakeClient, a_names_b, never, result, texts, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "any": {"type": "object"},
    "number": NUMBER,
    "broken": {"type": "nonsense"},
    "remote": {"$ref": "https://schemas.invalid/x.json"},
}
ANNOTATIONS: dict[str, Any] = {
    "read-only": {"readOnlyHint": True},
    "gentle": {"readOnlyHint": False, "destructiveHint": False},
    "silent": {"title": "?"},
    "destructive": {"destructiveHint": True},
    "none": None,
}
VISIBILITY: dict[str, Any] = {
    "unsaid": None,
    "both": {"ui": {"visibility": ["model", "app"]}},
    "app": {"ui": {"visibility": ["app"]}},
    "nobody": {"ui": {"visibility": []}},
    "null": {"ui": {"visibility": None}},
    "ui": {"ui": {"resourceUri": "ui://x"}},
    "text": {"ui": {"visibility": "supermodel"}},
    "not-ui": {"ui": "model"},
}
NAMES = ["a", "b", "c", "d"]
ARGUMENTS: list[dict[str, Any]] = [{}, {"n": 1}, {"n": 1.0}, {"n": 2}, {"n": "1"}, {"m": [1]}]


@dataclass(frozen=True)
class Kind:
    schema: str = "any"
    annotations: str = "read-only"
    visibility: str = "unsaid"


KINDS = st.builds(
    Kind,
    schema=st.sampled_from(["any", "any", "number", "broken", "remote"]),
    annotations=st.sampled_from(["read-only", "gentle", "read-only", *ANNOTATIONS]),
    visibility=st.sampled_from(["unsaid", "unsaid", "both", *VISIBILITY]),
)
DIRECTIVES = st.fixed_dictionaries(
    {"tool": st.sampled_from(NAMES)}, optional={"arguments": st.sampled_from(ARGUMENTS)}
)
ODD_DIRECTIVES = st.one_of(
    st.none(),
    st.just("a"),
    st.just({"arguments": {}}),
    st.just({"tool": "nowhere"}),
    st.just({"tool": "a", "name": "b"}),
    st.just({"tool": "a", "arguments": None}),
    st.fixed_dictionaries({"name": st.sampled_from(NAMES)}),
)
ABSENT = object()


def plain(arguments: dict[str, Any]) -> str:
    """Arguments as one text in which 1 and 1.0 are the same; written apart from the code's own."""
    return repr(sorted((k, float(v) if isinstance(v, int) else v) for k, v in arguments.items()))


def fits(kind: Kind, arguments: dict[str, Any]) -> bool:
    number = arguments.get("n")
    return kind.schema == "any" or (
        kind.schema == "number" and isinstance(number, int | float) and number == int(number)
    )


def shown(kind: Kind) -> bool:
    return kind.visibility in ("unsaid", "both", "ui", "not-ui")


def harmless(kind: Kind) -> bool:
    return kind.annotations in ("read-only", "gentle")


def expected(
    kinds: dict[str, Kind], answers: list[Any], first: tuple[str, dict[str, Any]], limit: int
) -> tuple[Outcome, list[tuple[str, dict[str, Any]]]]:
    """How the chain must end, and after which calls."""
    calls = [first]
    while True:
        value = answers[(len(calls) - 1) % len(answers)]
        if value is ABSENT:
            return Outcome.COMPLETED, calls
        if (
            not isinstance(value, dict)
            or not {"tool", "name"} & value.keys()
            or value.get("arguments", {}) is None
            or value.get("tool", value.get("name")) != value.get("name", value.get("tool"))
        ):
            return Outcome.MALFORMED_DIRECTIVE, calls
        name, arguments = value.get("tool", value.get("name")), value.get("arguments", {})
        if len(calls) == limit:
            return Outcome.LIMIT_REACHED, calls
        if name not in kinds:
            return Outcome.UNKNOWN_TOOL, calls
        if not fits(kinds[name], arguments):
            return Outcome.INVALID_ARGUMENTS, calls
        if (name, plain(arguments)) in [(n, plain(a)) for n, a in calls]:
            return Outcome.CYCLE, calls
        if not shown(kinds[name]) or not harmless(kinds[name]):
            return Outcome.DECLINED, calls
        calls.append((name, arguments))


@settings(max_examples=200, deadline=None)
@given(
    kinds=st.dictionaries(st.sampled_from(NAMES), KINDS, min_size=1),
    answers=st.lists(
        DIRECTIVES | DIRECTIVES | DIRECTIVES | ODD_DIRECTIVES | st.just(ABSENT), min_size=1
    ),
    first=st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS)),
    limit=st.integers(1, 12),
)
@example(kinds={"a": Kind()}, answers=[{"tool": "a"}], first=("a", {}), limit=12)
@example(
    kinds={"a": Kind()},
    answers=[{"tool": "a", "arguments": {"n": 1.0}}],
    first=("a", {"n": 1}),
    limit=12,
)
@example(
    kinds={"a": Kind(), "b": Kind(visibility="app")},
    answers=[{"tool": "a", "arguments": {"n": 2}}, {"tool": "b"}],
    first=("a", {}),
    limit=5,
)
def test_any_chain_ends_by_the_rules(
    kinds: dict[str, Kind], answers: list[Any], first: tuple[str, dict[str, Any]], limit: int
) -> None:
    tools = [
        tool(
            name,
            inputSchema=SCHEMAS[kind.schema],
            annotations=ANNOTATIONS[kind.annotations],
            _meta=VISIBILITY[kind.visibility],
        )
        for name, kind in kinds.items()
    ]
    said = 0

    def answer(name: str, arguments: dict[str, Any]) -> CallToolResult:
        nonlocal said
        value = answers[said % len(answers)]
        said += 1
        return result(f"{said}", **({} if value is ABSENT else {META_KEY: value}))

    client = FakeClient(tools, answer)
    chain = anyio.run(lambda: call_tool_with_chaining(client, *first, limit=limit))

    # What the rules forbid is said here once more, plainly; `expected` is exact.
    assert 1 <= len(client.calls) <= limit
    assert client.calls[0] == first
    for name, arguments in client.calls[1:]:
        assert name in kinds
        assert fits(kinds[name], arguments)
        assert shown(kinds[name])
        assert harmless(kinds[name])
    unique = {(name, plain(arguments)) for name, arguments in client.calls}
    assert len(unique) == len(client.calls)

    outcome, calls = expected(kinds, answers, first, limit)
    assert (chain.outcome, client.calls) == (outcome, calls)
    assert [(step.tool, step.arguments) for step in chain.steps] == calls
    assert [step.level for step in chain.steps] == list(range(1, len(calls) + 1))
    assert texts(chain) == [str(n + 1) for n in range(len(calls))]
    followed_nothing_more = outcome in (Outcome.COMPLETED, Outcome.MALFORMED_DIRECTIVE)
    assert (chain.pending is None) == followed_nothing_more
    assert chain.detail
    # However the pages lie, the list is read at most twice: once, and once on a miss.
    assert len(client.lists) <= len(calls) + 2


@pytest.mark.parametrize("annotations", ANNOTATIONS)
async def test_hints_of_a_server_that_is_not_trusted_allow_nothing(annotations: str) -> None:
    client = FakeClient([tool("b", annotations=ANNOTATIONS[annotations])], a_names_b)
    chain = await call_tool_with_chaining(client, "a", consent=FollowNonDestructive(trusted=False))

    assert chain.outcome is Outcome.DECLINED
    assert len(client.calls) == 1


async def test_every_call_gets_the_time_for_a_call() -> None:
    client = FakeClient([tool("b")], a_names_b)
    await call_tool_with_chaining(client, "a", call_timeout=60.0)
    await call_tool_with_chaining(client, "a")
    await call_tool_with_chaining(client, "a", call_timeout=None)

    assert client.timeouts == [60.0, 60.0, 300.0, 300.0, None, None]


async def test_total_time_that_runs_out_later_keeps_the_steps() -> None:
    client = FakeClient(
        [tool("b")],
        lambda name, _: never() if name == "b" else result("said", nextTool={"tool": "b"}),
    )
    reached: list[Step] = []
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await call_tool_with_chaining(client, "a", total_timeout=0.05, on_step=reached.append)

    ended = failure.value.result
    assert isinstance(failure.value.__cause__, TimeoutError)
    assert ended.outcome is Outcome.FAILED
    assert ended.steps == tuple(reached)
    assert texts(ended) == ["said"]
    assert client.calls == [("a", {}), ("b", {})]


async def test_only_the_wording_of_a_followed_directive_is_dropped() -> None:
    def worded(**marking: Any) -> TextContent:
        return TextContent(type="text", text="x", _meta=marking)

    others = [
        worded(**{IDENTIFIER: {"describes": "something else"}}),
        worded(**{IDENTIFIER: META_KEY}),
        worded(**{"com.example/other": {"describes": META_KEY}}),
    ]
    content = [worded(**{IDENTIFIER: {"describes": META_KEY}}), *others]
    first = CallToolResult(content=[*content], _meta={META_KEY: {"tool": "b"}})
    client = FakeClient([tool("b")], lambda name, _: first if name == "a" else result("b"))
    chain = await call_tool_with_chaining(client, "a")

    assert chain.content[:-1] == others
    assert chain.steps[0].result.content == content
