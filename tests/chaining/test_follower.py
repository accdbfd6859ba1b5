"""What no case of the client suite shows: which of several obstacles ends a chain, and when.

The rules of following are in the suite, which `tests/conformance` runs on the library.
"""

from typing import Any

import anyio
import pytest

from tool_chaining import META_KEY, Outcome, Step

from .support import FakeClient, Noting, follow, never, result, texts, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = [
    tool("number", inputSchema=NUMBER),
    tool("hidden", _meta={"ui": {"visibility": ["app"]}}),
]


@pytest.mark.parametrize(
    ("first", "directive", "options", "outcome"),
    [
        (("a", {}), 5, {"limit": 1, "follow_unadvertised": False}, Outcome.DECLINED),
        (("a", {}), 5, {"limit": 1}, Outcome.MALFORMED_DIRECTIVE),
        (("a", {}), {"tool": "nowhere"}, {"limit": 1}, Outcome.LIMIT_REACHED),
        (
            ("number", {"n": "1"}),
            {"tool": "number", "arguments": {"n": "1"}},
            {},
            Outcome.INVALID_ARGUMENTS,
        ),
        (("hidden", {}), {"tool": "hidden"}, {}, Outcome.CYCLE),
        (("a", {}), {"tool": "hidden"}, {}, Outcome.DECLINED),
    ],
)
async def test_the_first_obstacle_of_the_table_ends_the_chain(
    first: tuple[str, Any], directive: Any, options: dict[str, Any], outcome: Outcome
) -> None:
    """And nobody is asked about a call that cannot be made."""
    client = FakeClient(TOOLS, lambda *_: result("said", **{META_KEY: directive}))
    client.server_capabilities = {}
    person = Noting(True)
    chain = await follow(client, *first, consent=person, **{"follow_unadvertised": True, **options})
    assert chain.outcome is outcome
    assert client.calls == [first]
    assert person.asked == []


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
