"""The rules of following: any chain, against a client that is all script."""

import json
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import MCPError
from mcp.types import CallToolResult, TextContent
from mcp_types import HEADER_MISMATCH

from tool_chaining import (
    IDENTIFIER,
    META_KEY,
    ChainResult,
    Follower,
    FollowUpStatus,
    Outcome,
    Proposal,
    Step,
    TrustHints,
)

from .support import FakeClient, Noting, follow, never, result, texts, tool

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
    "gentle": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    "open": {"destructiveHint": False},
    "typed": {"readOnlyHint": "true", "destructiveHint": 0, "openWorldHint": None},
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
UNLISTED = "nowhere. The user wants it"
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
    st.just({"tool": UNLISTED}),
    st.just({"tool": "a", "name": "b"}),
    st.just({"tool": "a", "arguments": None}),
    st.fixed_dictionaries({"name": st.sampled_from(NAMES)}),
)
ABSENT = object()
LOST = object()
"""Not a result: the call has no answer."""
REFUSED = object()
"""Not a result: the server refused the call before it acted."""
ENDS = st.sampled_from([ABSENT, LOST, REFUSED])
ANSWERS = st.one_of(*[DIRECTIVES] * 8, *[ENDS] * 4, ODD_DIRECTIVES)
SAYING_SO: dict[str, tuple[str | None, Any]] = {
    "new": ("2026-07-28", {"extensions": {IDENTIFIER: {}}}),
    "old": ("2025-11-25", {"experimental": {IDENTIFIER: {}}}),
    "not": ("2025-11-25", {"tools": {}}),
    "too late": ("2026-07-28", {"experimental": {IDENTIFIER: {}}}),
    "not known": ("2025-11-25", None),
    "no revision": (None, {"extensions": {IDENTIFIER: {}}}),
}
Call = tuple[str, dict[str, Any]]


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


class Hints(Noting):
    """Allows what `TrustHints` allows, and writes down what it is asked."""

    async def allows(self, proposal: Proposal) -> bool:
        self.asked.append(("allows", proposal))
        return await TrustHints().allows(proposal)


POLICIES = {
    "nobody": lambda: None,
    "hints": lambda: Hints(hints=True),
    "yes": lambda: Noting(True),
}


@dataclass
class Session:
    """What a chain must do: the rules, written apart from the code's own.

    `test_never_twice.py` has what chains of one conversation do to each other.
    """

    kinds: dict[str, Kind]
    answers: list[tuple[Any, bool]]
    """What each call brings, one after another; the second says whether it is an error."""
    limit: int
    followed: bool
    """Whether directives of this server are followed at all."""
    policy: str
    said: int = 0

    def answer(self) -> tuple[Any, bool]:
        self.said += 1
        return self.answers[(self.said - 1) % len(self.answers)]

    def chain(
        self, first: Call
    ) -> tuple[Outcome, list[Call], list[tuple[str, FollowUpStatus, bool]], bool]:
        """How a chain must end, after which calls, with which follow-ups, and if it is an error."""
        calls, follow_ups, wrong = [first], list[tuple[str, FollowUpStatus, bool]](), False
        while True:
            name, arguments = calls[-1]
            value, is_error = self.answer()
            if value is LOST or value is REFUSED:
                status = FollowUpStatus.UNKNOWN if value is LOST else FollowUpStatus.NOT_MADE
                follow_ups += [(name, status, True)] if len(calls) > 1 else []
                return Outcome.FAILED, calls, follow_ups, wrong or value is LOST
            wrong = wrong or is_error
            follow_ups += [(name, FollowUpStatus.MADE, True)] if len(calls) > 1 else []
            if value is ABSENT:
                return Outcome.COMPLETED, calls, follow_ups, wrong
            if not self.followed:
                return Outcome.DECLINED, calls, [], wrong
            if (
                not isinstance(value, dict)
                or not {"tool", "name"} & value.keys()
                or value.get("arguments", {}) is None
            ):
                return Outcome.MALFORMED_DIRECTIVE, calls, follow_ups, wrong
            name, arguments = value.get("tool", value.get("name")), value.get("arguments", {})
            end = self.obstacle(name, arguments, calls)
            if end is not None:
                listed = end not in (Outcome.LIMIT_REACHED, Outcome.UNKNOWN_TOOL)
                return end, calls, [*follow_ups, (name, FollowUpStatus.NOT_MADE, listed)], wrong
            calls.append((name, arguments))

    def obstacle(self, name: str, arguments: dict[str, Any], calls: list[Call]) -> Outcome | None:
        if len(calls) == self.limit:
            return Outcome.LIMIT_REACHED
        if name not in self.kinds:
            return Outcome.UNKNOWN_TOOL
        if not fits(self.kinds[name], arguments):
            return Outcome.INVALID_ARGUMENTS
        if (name, plain(arguments)) in [(n, plain(a)) for n, a in calls]:
            return Outcome.CYCLE
        agreed = self.policy == "yes" or (self.policy == "hints" and harmless(self.kinds[name]))
        return None if shown(self.kinds[name]) and agreed else Outcome.DECLINED


@settings(max_examples=200, deadline=None)
@given(
    kinds=st.dictionaries(st.sampled_from(NAMES), KINDS, min_size=1),
    answers=st.lists(st.tuples(ANSWERS, st.booleans()), min_size=1),
    first=st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS)),
    limit=st.integers(1, 12),
    policy=st.sampled_from(["hints", "yes", *POLICIES]),
    says=st.sampled_from(["new", "new", "old", "old", *SAYING_SO]),
    anyway=st.booleans(),
)
@example(
    {"a": Kind()},
    [({"tool": "a", "arguments": {"n": 1.0}}, False)],
    ("a", {"n": 1}),
    12,
    "yes",
    "old",
    False,
)
def test_any_chain_ends_by_the_rules(
    kinds: dict[str, Kind],
    answers: list[tuple[Any, bool]],
    first: Call,
    limit: int,
    policy: str,
    says: str,
    anyway: bool,
) -> None:
    tools = [
        {
            "name": name,
            "inputSchema": SCHEMAS[kind.schema],
            "annotations": ANNOTATIONS[kind.annotations],
            "_meta": VISIBILITY[kind.visibility],
        }
        for name, kind in kinds.items()
    ]
    followed = anyway or says in ("new", "old")
    server, model = (Session(kinds, answers, limit, followed, policy) for _ in range(2))

    def answer(name: str, _: Any) -> CallToolResult:
        value, is_error = server.answer()
        if value is LOST:
            raise ConnectionError("the line is cut")
        if value is REFUSED:
            raise MCPError(HEADER_MISMATCH, "try again")
        return CallToolResult(
            content=[TextContent(type="text", text=f"result {server.said}")],
            structured_content={"by": name},
            is_error=is_error,
            _meta={} if value is ABSENT else {META_KEY: value},
        )

    client = FakeClient(tools, answer)
    client.protocol_version, client.server_capabilities = SAYING_SO[says]
    asking = POLICIES[policy]()
    follower = Follower(client, limit=limit, consent=asking, follow_unadvertised=anyway)
    chain = anyio.run(follower.call_tool, *first)

    outcome, calls, follow_ups, is_error = model.chain(first)
    assert (chain.outcome, client.calls) == (outcome, calls)
    brought = calls[:-1] if outcome is Outcome.FAILED else calls
    assert [(step.tool, step.arguments) for step in chain.steps] == brought
    assert [step.level for step in chain.steps] == [n + 1 for n in range(len(brought))]
    assert texts(chain) == [f"result {n + 1}" for n in range(len(brought))]
    assert [(each.tool, each.status, each.listed) for each in chain.follow_ups] == follow_ups
    assert chain.detail
    # Nobody is asked about a call that cannot be made, and nobody twice about the same.
    if asking:
        asked = [proposal.tool.name for _, proposal in asking.asked]
        assert asked[: len(calls) - 1] == [name for name, _ in calls[1:]]
        declined = outcome is Outcome.DECLINED and followed
        assert len(asked) - len(calls) + 1 == (declined and shown(kinds[follow_ups[-1][0]]))
    # A list that cannot have been kept is read once for each directive.
    assert len(client.lists) <= len(calls)
    if chain.steps and not followed:
        assert chain.merged() is chain.steps[0].received
    elif chain.steps:
        check_the_one_result(chain, is_error, policy)


def check_the_one_result(chain: ChainResult, is_error: bool, policy: str) -> None:
    """What a model, and a host that shows structured content alone, learn of a chain."""
    merged = chain.merged()
    assert merged.is_error is is_error
    assert META_KEY not in (merged.meta or {})
    malformed = chain.outcome is Outcome.MALFORMED_DIRECTIVE
    said = (merged.structured_content or {}).get("followUps", [])
    may_repeat = is_error and any(
        each.status is not FollowUpStatus.NOT_MADE for each in chain.follow_ups
    )
    assert ("again could repeat" in str(said)) is may_repeat
    assert len(said) == len(chain.follow_ups) + malformed + may_repeat
    assert not malformed or "A next step cannot be read: nextTool" in str(said)
    assert bool(said) == (len(merged.content) > len(chain.steps))
    assert UNLISTED not in merged.model_dump_json()
    for text, follow_up in zip(said, chain.follow_ups, strict=False):
        named = f"Call {follow_up.level}, the server's next step {json.dumps(follow_up.tool)},"
        assert (named in text) is follow_up.listed
        assert ("has already run" in text) is (follow_up.status is FollowUpStatus.MADE)
        forbidden = follow_up.status is not FollowUpStatus.NOT_MADE and not follow_up.is_error
        assert ("Do not call it again" in text) is forbidden
        assert ("not known whether it took effect" in text) is (
            follow_up.status is FollowUpStatus.UNKNOWN
        )
    # A model may be told of the call only where nobody could be asked about it.
    suggested = [item for item in merged.content if (item.meta or {}).get(IDENTIFIER)]
    assert len(suggested) == (chain.unfinished is not None and chain.unfinished.suggested)
    assert not suggested or (policy in ("nobody", "hints") and chain.outcome is Outcome.DECLINED)


async def test_total_time_that_runs_out_later_keeps_the_steps() -> None:
    client = FakeClient(
        [tool("b")],
        lambda name, _: never() if name == "b" else result("said", nextTool={"tool": "b"}),
    )
    reached: list[Step] = []
    with anyio.fail_after(60):
        ended = await follow(client, "a", total_timeout=0.05, on_step=reached.append)

    assert isinstance(ended.error, TimeoutError)
    assert ended.outcome is Outcome.FAILED
    assert ended.steps == tuple(reached)
    assert texts(ended) == ["said"]
    assert client.calls == [("a", {}), ("b", {})]
