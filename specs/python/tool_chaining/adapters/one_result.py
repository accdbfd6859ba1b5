"""What all adapters share: make one call, follow the chain, return one result."""

from typing import Any, TypedDict

from mcp_types import CallToolResult

from tool_chaining import (
    CallsInDoubt,
    ChainResult,
    ConsentPolicy,
    ToolCaller,
    call_tool_with_chaining,
)
from tool_chaining.client import OnEnd, OnProposal, OnStep
from tool_chaining.consent import check_policy


class ChainOptions(TypedDict, total=False):
    """The options of `call_tool_with_chaining` that an adapter takes as `chaining`."""

    consent: ConsentPolicy
    limit: int
    call_timeout: float | None
    total_timeout: float | None
    on_step: OnStep
    on_proposal: OnProposal
    on_end: OnEnd
    follow_unadvertised: bool
    in_doubt: CallsInDoubt


def checked(chaining: ChainOptions | None) -> ChainOptions:
    """Return the options; raises `TypeError` now, and not during a call of the model."""
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

    `call` has options of `call_tool_with_chaining` for this call only.
    """
    options = {key: value for key, value in call.items() if value is not None}
    return as_one(await call_tool_with_chaining(caller, name, arguments, **{**chaining, **options}))


def as_one(chain: ChainResult) -> CallToolResult:
    """Return `ChainResult.merged()`, for the model.

    If the first call raised, its exception is raised again, so that the framework handles it as
    usual. If a later call raised, the result says so (TC-C-33).
    """
    if chain.error is not None and not chain.follow_ups:
        raise chain.error
    return chain.merged()
