"""The client half: call a tool, and follow the chain that its result begins.

    result = await call_tool_with_chaining(client, "prepare_money_transfer", {...})
    for step in result.steps:
        print(step.level, step.tool)

It wraps `mcp.Client.call_tool`, since a client extension of the SDK never sees an ordinary
result. Connect with `Client(..., extensions=[CLIENT_EXTENSION])` to tell servers about it.
"""

import inspect
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol, cast

import anyio
import anyio.lowlevel
from mcp import Client
from mcp.client import advertise
from mcp.types import CallToolResult, ContentBlock, RequestParamsMeta, Tool

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.catalog import ToolCatalog
from banking_server.chaining.content import hidden_from_model, words_a_directive
from banking_server.chaining.directive import (
    IDENTIFIER,
    SETTINGS,
    Absent,
    Directive,
    Malformed,
    read_directive,
)
from banking_server.chaining.provenance import Provenance
from banking_server.chaining.values import canonical

DEFAULT_LIMIT: Final = 5
"""Calls in one chain, the first one included."""

CLIENT_EXTENSION: Final = advertise(IDENTIFIER, SETTINGS)
"""Pass it in `Client(..., extensions=[CLIENT_EXTENSION])` to declare the extension."""


class Outcome(StrEnum):
    """How a chain ended."""

    COMPLETED = "completed"
    """The last result named no further tool."""
    MALFORMED_DIRECTIVE = "malformed_directive"
    """`_meta.nextTool` was there, but is no directive."""
    UNKNOWN_TOOL = "unknown_tool"
    """The directive names a tool that the server does not list."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """Its arguments do not fit that tool's input schema."""
    CYCLE = "cycle"
    """The same call, tool and arguments, was made before in this chain."""
    LIMIT_REACHED = "limit_reached"
    """The chain has made as many calls as it may."""
    DECLINED = "declined"
    """The host does not consent to the call, or the tool is hidden from the model."""
    FAILED = "failed"
    """A call raised; see `ChainFailed`."""


@dataclass(frozen=True)
class Step:
    """One call of a chain, with its result."""

    level: int
    """Its number in the chain; the first is 1."""
    tool: str
    arguments: dict[str, Any]
    result: CallToolResult
    deprecated_alias: bool = False
    """The directive that led here said `name` instead of `tool`."""


@dataclass(frozen=True)
class ChainResult:
    """Everything that happened in a chain."""

    chain_id: str
    outcome: Outcome
    detail: str
    """The outcome in a sentence for people."""
    steps: tuple[Step, ...]
    """The calls that were made, in order; each one's result is complete."""
    pending: Directive | None = None
    """The directive that was not followed, where there is one."""

    @property
    def content(self) -> list[ContentBlock]:
        """The content of all steps, in order, so that nothing said to the user is lost."""
        return [block for step in self.steps for block in self.said(step)]

    def said(self, step: Step) -> list[ContentBlock]:
        """Return the content of one of the steps.

        Left out is only the server's wording of a directive that was in fact followed.
        """
        if step.level == len(self.steps):
            return step.result.content
        return [
            block for block in step.result.content if not words_a_directive({"_meta": block.meta})
        ]

    def merged(self) -> CallToolResult:
        """Return the last step's result with the content of all steps.

        Raises ValueError where no call was completed.
        """
        if not self.steps:
            raise ValueError("no call of this chain was completed")
        return self.steps[-1].result.model_copy(update={"content": self.content})


class ChainFailed(Exception):
    """A call of the chain raised, or its total time ran out; `__cause__` is what was raised.

    `result` holds every step that was completed before, so nothing that happened is hidden.
    """

    def __init__(self, result: ChainResult) -> None:
        super().__init__(result.detail)
        self.result = result


@dataclass(frozen=True)
class Proposal:
    """A follow-up call that a host is asked to consent to."""

    tool: Tool
    """As the server lists it. Its annotations are the server's word, no more."""
    arguments: dict[str, Any]
    level: int
    previous_tool: str


class ConsentPolicy(Protocol):
    """Decides for the host whether a follow-up call is made, as it does for a model's call."""

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the call may be made; it can ask the user."""
        ...


class FollowNonDestructive:
    """Allow what is annotated read-only or non-destructive, decline the rest.

    A tool without annotations counts as destructive, as MCP defines the hints' defaults.
    """

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the tool's annotations say that it destroys nothing."""
        hints = proposal.tool.annotations
        return hints is not None and (
            hints.read_only_hint is True or hints.destructive_hint is False
        )


OnStep = Callable[[Step], Awaitable[None] | None]


async def call_tool_with_chaining(
    client: Client,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    limit: int = DEFAULT_LIMIT,
    consent: ConsentPolicy | None = None,
    catalog: ToolCatalog | None = None,
    call_timeout: float | None = None,
    total_timeout: float | None = None,
    on_step: OnStep | None = None,
    meta: dict[str, Any] | None = None,
) -> ChainResult:
    """Call the tool `name`, then every tool that the results name, on the same server.

    Args:
        client: A connected client. Questions to the user inside a step go to its callbacks and
            are part of that step's one call.
        name: The first tool. It is the caller's own choice, so no check or consent is applied.
        arguments: Its arguments.
        limit: Calls at the most, this first one included.
        consent: Asked before each follow-up; `FollowNonDestructive` by default.
        catalog: The server's tools, where the caller keeps them between chains.
        call_timeout: Seconds that each request may take; reading the tool list counts as one.
        total_timeout: Seconds that the whole chain may take, questions to the user included.
        on_step: Told of each step as soon as its result is there.
        meta: Further `_meta` of every request.

    Returns:
        Every step with the outcome, which is any but `failed`.

    Raises:
        ChainFailed: A call raised or time ran out; it holds the steps that were completed.
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"limit counts the first call too, so it must be at least 1, not {limit}")
    chain = _Chain(
        client=client,
        limit=limit,
        consent=consent or FollowNonDestructive(),
        catalog=catalog or ToolCatalog(client),
        call_timeout=call_timeout,
        on_step=on_step,
        meta=meta or {},
    )
    try:
        with anyio.fail_after(total_timeout):
            return await chain.run(name, arguments or {})
    except Exception as error:
        reason = str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            reason = "the time allowed for it ran out"
        detail = f"{chain.doing} failed: {reason}"
        raise ChainFailed(chain.ended(Outcome.FAILED, detail)) from error


@dataclass
class _Chain:
    """One chain under way."""

    client: Client
    limit: int
    consent: ConsentPolicy
    catalog: ToolCatalog
    call_timeout: float | None
    on_step: OnStep | None
    meta: dict[str, Any]
    chain_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list[Step] = field(default_factory=list[Step])
    made: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    pending: Directive | None = None
    doing: str = ""

    async def run(self, name: str, arguments: dict[str, Any]) -> ChainResult:
        directive, alias = Directive.model_construct(tool=name, arguments=arguments), False
        while True:
            await self._call(directive, alias)
            reading = read_directive(self.steps[-1].result.meta)
            if isinstance(reading, Absent):
                return self.ended(Outcome.COMPLETED, "the last result names no further tool")
            if isinstance(reading, Malformed):
                return self.ended(Outcome.MALFORMED_DIRECTIVE, reading.reason)
            directive, alias = reading.directive, reading.deprecated_alias
            self.pending = directive
            self.doing = f"the check before the call of {directive.tool!r}"
            obstacle = await self._obstacle(directive)
            if obstacle is not None:
                return obstacle
            self.pending = None

    async def _call(self, directive: Directive, alias: bool) -> None:
        self.doing = f"the call of {directive.tool!r} (call {len(self.steps) + 1})"
        # The SDK can start a request without ever giving way; a cancelled chain starts none.
        await anyio.lowlevel.checkpoint()
        self.made.add(_call_key(directive))
        provenance = Provenance(
            chain_id=self.chain_id,
            level=len(self.steps) + 1,
            previous_tool=self.steps[-1].tool if self.steps else None,
        )
        result = await self.client.call_tool(
            directive.tool,
            directive.arguments,
            read_timeout_seconds=self.call_timeout,
            meta=cast(RequestParamsMeta, {**self.meta, **provenance.to_wire()}),
        )
        step = Step(provenance.level, directive.tool, directive.arguments, result, alias)
        self.steps.append(step)
        if self.on_step is not None:
            self.doing = f"on_step after the call of {directive.tool!r}"
            told = self.on_step(step)
            if inspect.isawaitable(told):
                await told

    async def _obstacle(self, directive: Directive) -> ChainResult | None:
        """Return how the chain ends before `directive` is followed, or None where it goes on."""
        if len(self.steps) >= self.limit:
            return self.ended(
                Outcome.LIMIT_REACHED,
                f"{len(self.steps)} calls were made, which is the limit; "
                f"{directive.tool!r} was not called",
            )
        with anyio.fail_after(self.call_timeout):
            tool = await self.catalog.find(directive.tool)
        if tool is None:
            return self.ended(Outcome.UNKNOWN_TOOL, f"the server lists no tool {directive.tool!r}")
        problem = argument_problem(tool.input_schema, directive.arguments)
        if problem is not None:
            return self.ended(
                Outcome.INVALID_ARGUMENTS, f"the directive to {directive.tool!r}: {problem}"
            )
        if _call_key(directive) in self.made:
            return self.ended(
                Outcome.CYCLE,
                f"{directive.tool!r} was already called with the same arguments in this chain",
            )
        if hidden_from_model(tool.meta):
            return self.ended(Outcome.DECLINED, f"{tool.name!r} is not meant for the model to call")
        proposal = Proposal(
            tool, directive.arguments, len(self.steps) + 1, previous_tool=self.steps[-1].tool
        )
        if not await self.consent.allows(proposal):
            return self.ended(
                Outcome.DECLINED, f"the host did not consent to the call of {tool.name!r}"
            )
        return None

    def ended(self, outcome: Outcome, detail: str) -> ChainResult:
        return ChainResult(self.chain_id, outcome, detail, tuple(self.steps), self.pending)


def _call_key(directive: Directive) -> tuple[str, str]:
    return directive.tool, canonical(directive.arguments)
