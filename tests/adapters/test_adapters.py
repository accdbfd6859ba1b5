"""Each adapter with its framework, over sockets and processes, and a model from a script.

`test_usage.py` has the story of the locked account.
"""

from typing import Any

import pytest

from ..chaining.support import Noting
from .support import FRAMEWORKS, agents_server, fastmcp_client, missing

INSTALL = "pip install '.[dev]'"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("fastmcp", INSTALL)),
    pytest.mark.needs_program(missing("agents", INSTALL)),
]
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@each_framework
async def test_a_destructive_step_needs_consent(elsewhere: str, framework: str) -> None:
    run = FRAMEWORKS[framework]
    said = await run(elsewhere, ("tidy_up", {}))
    assert "There is a lot to delete." in said
    assert "was not made: nobody could be asked to allow it" in said
    # So the model may ask for the call itself, and its host decides.
    assert "Next step suggested by this server" in said
    assert "Everything is gone." not in said
    assert "Only dust" not in said  # The title is not for models.

    seen: list[Any] = []
    options = {"consent": Noting(True), "limit": 2, "on_step": seen.append, "on_end": seen.append}
    said = await run(elsewhere, ("tidy_up", {}), chaining=options)
    assert said.index("There is a lot to delete.") < said.index("Everything is gone.")
    assert [step.level for step in seen[:-1]] == [1, 2]
    assert seen[-1].outcome == "completed"


async def test_a_lost_call_is_not_repeated(elsewhere: str) -> None:
    async with fastmcp_client(elsewhere) as client, agents_server(elsewhere) as server:
        for call in (client.call_tool_mcp, server.call_tool):
            first, second = [(await call("begin", {})).content[-1].text for _ in range(2)]
            assert "was started, and it is not known whether it took effect" in first
            assert "was not made: an earlier call may have taken effect" in second


@pytest.mark.parametrize(
    "policy",
    [
        {"require_approval": {"delete_all": "always"}},
        {"require_approval": lambda *asked: False},
        {"tool_filter": {"blocked_tool_names": ["delete_all"]}},
        {"tool_filter": {"blocked_tool_names": ["delete_all"]}, "cache_tools_list": True},
        {"tool_filter": lambda asked, tool: True},
    ],
    ids=["approval", "approval-asked-for", "filter", "filter-of-a-kept-list", "filter-asked"],
)
async def test_a_step_needs_the_approvals_of_the_agent(elsewhere: str, policy: Any) -> None:
    """And that it may not is the reason that is told, whatever the server lists."""
    allowed = {"chaining": {"consent": Noting(True)}}
    said = await FRAMEWORKS["OpenAI Agents"](elsewhere, ("order", {}), **allowed, **policy)
    assert "It is ordered." in said
    async with agents_server(elsewhere, **allowed, **policy) as server:
        result = await server.call_tool("tidy_up", {})
    said = str(result.content)
    assert "was not made: nobody could be asked" in said or "the host did not agree" in said
    assert ("Next step suggested" in said) is ("require_approval" in policy)


async def test_a_server_with_retries_is_refused(elsewhere: str) -> None:
    with pytest.raises(ValueError, match="max_retry_attempts must be 0"):
        async with agents_server(elsewhere, max_retry_attempts=2):
            pass
