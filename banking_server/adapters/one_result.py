"""What all adapters do: make the framework's one call, follow the chain, return one result."""

from typing import Any, TypedDict

from mcp_types import CallToolResult

from banking_server.chaining import (
    ChainResult,
    ConsentPolicy,
    ToolCaller,
    call_tool_with_chaining,
)
from banking_server.chaining.client import OnEnd, OnProposal, OnStep
from banking_server.chaining.consent import check_policy


class ChainOptions(TypedDict, total=False):
    """What `call_tool_with_chaining` takes, by the same names, and an adapter as `chaining`."""

    consent: ConsentPolicy
    limit: int
    call_timeout: float | None
    total_timeout: float | None
    on_step: OnStep
    on_proposal: OnProposal
    on_end: OnEnd
    follow_unadvertised: bool


def checked(chaining: ChainOptions | None) -> ChainOptions:
    """Return the options; raise `TypeError` where they are made, and not in a model's call."""
    check_policy((chaining or {}).get("consent"))
    return chaining or {}


async def one_result(
    caller: ToolCaller,
    name: str,
    arguments: dict[str, Any] | None,
    chaining: ChainOptions,
    **call: Any,
) -> CallToolResult:
    """Make a call and follow its chain; return the one result of both, as `as_one` does.

    `call` is what `call_tool_with_chaining` is told of this call alone.
    """
    told = {key: value for key, value in call.items() if value is not None}
    return as_one(await call_tool_with_chaining(caller, name, arguments, **{**chaining, **told}))


def as_one(chain: ChainResult) -> CallToolResult:
    """Return `ChainResult.merged()`, for the model to see.

    If the first call raised, that is raised, so that the framework deals with it as ever. Where a
    later one did, the result says so (TC-C-33).
    """
    if chain.error is not None and not chain.follow_ups:
        raise chain.error
    return chain.merged()
