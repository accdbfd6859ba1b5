"""What all adapters share: make one call, follow the chain, return one result."""

from dataclasses import replace
from typing import Any, TypedDict

from mcp_types import CallToolResult

from tool_chaining import ChainResult, ConsentPolicy, Conversation, Follower, ToolCaller
from tool_chaining.client import OnEnd, OnStep


class ChainOptions(TypedDict, total=False):
    """The options of `Follower` that an adapter takes as `chaining`."""

    consent: ConsentPolicy
    conversation: Conversation
    limit: int
    call_timeout: float | None
    total_timeout: float | None
    on_step: OnStep
    on_end: OnEnd
    follow_unadvertised: bool


async def one_result(
    follower: Follower,
    caller: ToolCaller,
    name: str,
    arguments: dict[str, Any] | None,
    *,
    meta: dict[str, Any] | None = None,
    **options: Any,
) -> CallToolResult:
    """Make a call with this caller and follow its chain; return both as one result.

    Uses the tool list and the record of `follower`; `options` override its own for this call.
    """
    given = {key: value for key, value in options.items() if value is not None}
    chain = await replace(follower, client=caller, **given).call_tool(name, arguments, meta=meta)
    return as_one(chain)


def as_one(chain: ChainResult) -> CallToolResult:
    """Return `ChainResult.merged()`, for the model.

    If the first call raised, its exception is raised again, so that the framework handles it as
    usual. If a later call raised, the result says so (TC-C-33).
    """
    if chain.error is not None and not chain.follow_ups:
        raise chain.error
    return chain.merged()
