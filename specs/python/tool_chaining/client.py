"""The client half: call a tool, and follow the chain that its result begins.

    chain = await call_tool_with_chaining(client, "prepare_money_transfer", {...})
    chain.raise_for_failure()
    for step in chain.steps:
        print(step.level, step.tool)

The client is an `mcp.Client`, or any other object with the two methods `call_tool` and
`list_tools`: see `ToolCaller`. This is a function around the client, because the SDK passes
ordinary results to no client extension. Connect with `mcp.Client(...,
extensions=[CLIENT_EXTENSION])` to declare the extension to the server.

**Never twice.** Each call of a chain is one `call_tool` of the client, and is never repeated here.
If its response is lost, the chain fails and says that the effect of the call is unknown. If the
server refused the call before it acted, the chain says that it was not made (TC-C-39). `mcp.Client`
sends a request again only in that case, and with the user's answer to a question of the server; all
that is one call (TC-C-09). A client of your own must not repeat more.

No later chain calls the same tool again without asking (TC-C-55). A host that connects again, for
example because its stdio server died, keeps one `CallsInDoubt` for its conversation::

    in_doubt = CallsInDoubt()
    chain = await call_tool_with_chaining(client, "prepare", {...}, in_doubt=in_doubt)
"""

import inspect
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp_types import Tool
from pydantic import ValidationError

from tool_chaining.caller import ToolCaller, advertised, awaited, tool_result
from tool_chaining.catalog import Catalog, memory_of
from tool_chaining.consent import ConsentPolicy, Proposal, check_policy, is_harmless
from tool_chaining.content import hidden_from_model, json_string
from tool_chaining.directive import (
    DEFAULT_LIMIT,
    Absent,
    Directive,
    Found,
    Malformed,
    Reading,
    read_directive,
)
from tool_chaining.doubt import CallsInDoubt, RunningCall
from tool_chaining.provenance import Provenance
from tool_chaining.refused import capture_http_status, was_refused
from tool_chaining.result import (
    ChainResult,
    FollowUp,
    FollowUpStatus,
    Outcome,
    Step,
)
from tool_chaining.values import canonical

NOT_ADVERTISED: Final = "the server does not advertise tool chaining"
"""The detail of a chain that ended because of TC-C-03."""

DEFAULT_CALL_TIMEOUT: Final = 300.0
"""Seconds that one request may take by default."""

DEFAULT_TOTAL_TIMEOUT: Final = 3600.0
"""Seconds that a whole chain may take by default."""

OnStep = Callable[[Step], Awaitable[None] | None]
OnProposal = Callable[[Proposal], Awaitable[None] | None]
OnEnd = Callable[[ChainResult], None]


async def call_tool_with_chaining(
    client: ToolCaller,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    limit: int = DEFAULT_LIMIT,
    consent: ConsentPolicy | None = None,
    validate: bool = True,
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT,
    total_timeout: float | None = DEFAULT_TOTAL_TIMEOUT,
    on_step: OnStep | None = None,
    on_proposal: OnProposal | None = None,
    on_end: OnEnd | None = None,
    meta: dict[str, Any] | None = None,
    follow_unadvertised: bool = False,
    in_doubt: CallsInDoubt | None = None,
) -> ChainResult:
    """Call the tool `name`, then every tool that the results name, on the same server.

    Args:
        client: A client that is connected to the server, and answers its questions.
        name: The first tool. The caller chose it, so it needs no check and no consent.
        arguments: The arguments of the first call; none means `{}`.
        limit: How many calls are made at most, the first one included.
        consent: Asked before each follow-up call. Without it no follow-up call is made (TC-C-21).
            `FollowNonDestructive()` is for a server whose hints the user trusts.
        validate: Whether a directive's arguments are validated before the call (TC-C-14). Say False
            for a server that nobody trusts: its schema could keep the validator busy for hours. The
            server validates them in any case.
        call_timeout: Seconds that each request may take; None means no limit. `client.call_tool`
            receives it and must enforce it: only the client knows whether the server is slow or
            the user is being asked. `mcp.Client` does not know it on revision 2025-11-25. Reading
            the tool list counts as one request too.
        total_timeout: Seconds that the whole chain may take, with all questions to the user. None
            means no limit.
        on_step: Called with each step as soon as its result has arrived.
        on_proposal: Called with each follow-up call that can be made, before `consent` is asked.
        on_end: Called with the result of the chain, also if this function cannot return it because
            its task is cancelled. Cancel the task to stop a chain (TC-C-22). An `mcp.Client` over
            HTTP cancels the task itself when its connection breaks.
        meta: Further members for the `_meta` of every `tools/call`. Only the first call gets a
            `progressToken`.
        follow_unadvertised: Follow directives even if the server is not known to advertise the
            extension (TC-C-03). The user or the host decides that for this server.
        in_doubt: The tools of this server whose last call has an unknown effect. None of them is
            called unless `consent` has a method `allows_again` that agrees (TC-C-55). Default:
            those of the object `client`. A host whose conversation outlives the client passes its
            own.

    Returns:
        Every completed step, and the outcome. If a call raised or time ran out, the outcome is
        `failed`; `raise_for_failure()` raises the exception.

    Raises:
        ValueError: `limit` is less than 1.
        TypeError: `consent` is not a policy.
    """
    check_policy(consent)
    if limit < 1:
        raise ValueError(f"limit counts the first call too, so it must be at least 1, not {limit}")
    memory = memory_of(client)
    chain = _Chain(
        client=client,
        limit=limit,
        consent=consent,
        validate=validate,
        call_timeout=call_timeout,
        on_step=on_step,
        on_proposal=on_proposal,
        meta=meta or {},
        follow_unadvertised=follow_unadvertised,
        catalog=memory.catalog,
        in_doubt=memory.in_doubt if in_doubt is None else in_doubt,
    )
    try:
        try:
            with anyio.fail_after(total_timeout):
                result = await chain.run(name, arguments or {})
        except Exception as error:
            # A client can hide that it was cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
            result = chain.failed(error)
    except BaseException:
        # The task was cancelled from outside. The cancellation must be raised again.
        if on_end is not None:
            on_end(chain.cancelled())
        raise
    if on_end is not None:
        on_end(result)
    return result


@dataclass(frozen=True)
class _Calling:
    """A call has begun, and has brought no result."""

    directive: Directive
    call: RunningCall


@dataclass(frozen=True)
class _Returned:
    """A call has brought its result, of which the host is being told."""

    reading: Reading


@dataclass(frozen=True)
class _Checking:
    """The last result names a tool, which may be called or not."""

    directive: Directive
    listed: bool = False
    """Whether the tool was found in the server's list."""


@dataclass
class _Chain:
    """A running chain."""

    client: ToolCaller
    limit: int
    consent: ConsentPolicy | None
    validate: bool
    call_timeout: float | None
    on_step: OnStep | None
    on_proposal: OnProposal | None
    meta: dict[str, Any]
    follow_unadvertised: bool
    catalog: Catalog
    in_doubt: CallsInDoubt
    chain_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list[Step] = field(default_factory=list[Step])
    made: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The tools that were called, each with its canonical arguments."""
    state: _Calling | _Returned | _Checking | None = None
    """What is happening now; None before the first call."""

    async def run(self, name: str, arguments: dict[str, Any]) -> ChainResult:
        directive = Directive(name, arguments)
        # A cancelled chain must not send a request. A client may send one before its first await.
        await anyio.lowlevel.checkpoint()
        while True:
            reading = await self._call(directive)
            if isinstance(reading, Absent):
                return self.ended(Outcome.COMPLETED, "")
            if isinstance(reading, Malformed):
                return self.ended(Outcome.MALFORMED_DIRECTIVE, reading.reason)
            directive = reading.directive
            self.state = _Checking(directive)
            end = await self._obstacle(directive)
            if end is not None:
                await anyio.lowlevel.checkpoint_if_cancelled()
                return self.ended(*end)

    async def _call(self, directive: Directive) -> Reading:
        """Make one call, tell the host of its result, and read what the result names."""
        level, previous = len(self.steps) + 1, self.steps[-1].tool if self.steps else None
        self.made.add(_call_key(directive))
        provenance = Provenance(self.chain_id, level, previous)
        with self.in_doubt.call(directive.tool) as call, capture_http_status() as statuses:
            self.state = _Calling(directive, call)
            try:
                returned = self.client.call_tool(
                    directive.tool,
                    directive.arguments,
                    read_timeout_seconds=self.call_timeout,
                    meta={**self.meta, **provenance.to_wire()},
                )
                # A progress token belongs to the first call only.
                self.meta = {k: value for k, value in self.meta.items() if k != "progressToken"}
                result = tool_result(await awaited(returned, "call_tool"))
            except Exception as error:
                if was_refused(error, statuses):
                    call.status = FollowUpStatus.NOT_MADE
                raise
            call.status = FollowUpStatus.MADE
        reading = read_directive(result.meta)
        self.state = _Returned(reading)
        step = Step(level, directive.tool, directive.arguments, result, directive.title)
        self.steps.append(step)
        await _tell(self.on_step, step)
        return reading

    async def _obstacle(self, directive: Directive) -> tuple[Outcome, str] | None:
        """Return how the chain ends before `directive` is followed, or None if it goes on.

        This is the table of outcomes from the limit on. If a list that was read before
        would end the chain, by its tools or its hints, the list is read again (TC-C-13). Consent is
        asked for once only.
        """
        # A cancelled chain asks no question.
        await anyio.lowlevel.checkpoint()
        name = json_string(directive.tool)
        if len(self.steps) >= self.limit:
            made = f"{len(self.steps)} calls were made, which is the limit"
            return Outcome.LIMIT_REACHED, f"{made}; {name} was not called"
        tool = self.catalog.known(directive.tool)
        if tool is None or not is_harmless(tool) or self._checked(directive, tool) is not None:
            with anyio.fail_after(self.call_timeout):
                tool = await self.catalog.read(self.client, directive.tool)
        if tool is None:
            return Outcome.UNKNOWN_TOOL, f"the server lists no tool {name}"
        self.state = _Checking(directive, listed=True)
        if (end := self._checked(directive, tool)) is not None:
            return end
        level, previous = len(self.steps) + 1, self.steps[-1].tool
        proposal = Proposal(tool, directive.arguments, level, previous, directive.title)
        await _tell(self.on_proposal, proposal)
        if directive.tool not in self.in_doubt and not await self._agreed("allows", proposal):
            why = "" if self.consent else "; no consent policy was given: pass consent="
            return Outcome.DECLINED, f"the host did not consent to the call of {name}{why}"
        await anyio.lowlevel.checkpoint()
        # While the user was asked, another chain may have called the tool. There is no await
        # between this check and the call.
        if directive.tool in self.in_doubt:
            if not await self._agreed("allows_again", proposal):
                return Outcome.DECLINED, (
                    f"whether an earlier call of {name} took effect is not known, and nobody "
                    "agreed to call it again"
                )
            await anyio.lowlevel.checkpoint()
        return None

    async def _agreed(self, question: str, proposal: Proposal) -> bool:
        """Return the answer of a method of the host's `ConsentPolicy`; False if it has none."""
        ask = getattr(self.consent, question, None)
        return ask is not None and bool(await ask(proposal))

    def _checked(self, directive: Directive, tool: Tool) -> tuple[Outcome, str] | None:
        """Return how the chain ends because of the listed tool, or None if it goes on."""
        name = json_string(directive.tool)
        problem = None
        if self.validate:
            problem = self.catalog.arguments.problem(
                tool.name, tool.input_schema, directive.arguments
            )
        if problem is not None:
            return Outcome.INVALID_ARGUMENTS, f"the directive to {name}: {problem}"
        if _call_key(directive) in self.made:
            return Outcome.CYCLE, f"{name} was already called with the same arguments in this chain"
        if hidden_from_model(tool.meta):
            return Outcome.DECLINED, f"{name} is not meant for the model to call"
        if not (self.follow_unadvertised or advertised(self.client)):
            return Outcome.DECLINED, NOT_ADVERTISED
        return None

    def failed(self, error: Exception) -> ChainResult:
        """Return the result of a chain in which `error` was raised."""
        if isinstance(error, TimeoutError):
            reason = "the time allowed for it ran out"
        elif isinstance(error, ValidationError):
            place = ".".join(map(str, error.errors()[0]["loc"]))
            reason = f"what the server sent is not valid MCP, at {json_string(place)}"
        else:
            # The message can come from the server. In quotes it does not look like our text.
            reason = json_string(str(error) or type(error).__name__)
        return self.ended(Outcome.FAILED, f"{self._doing()} failed: {reason}", error)

    def _doing(self) -> str:
        """Return what is being done, for the message if it fails."""
        match self.state:
            case _Calling(directive):
                return f"the call of {json_string(directive.tool)} (call {len(self.steps) + 1})"
            case _Returned():
                return f"on_step after the call of {json_string(self.steps[-1].tool)}"
            case _Checking(directive):
                return f"the check before the call of {json_string(directive.tool)}"
        return "the start of the chain"

    def cancelled(self) -> ChainResult:
        """Return the result of a chain whose task was cancelled."""
        done = len(self.steps)
        when = f"after {done} call{'' if done == 1 else 's'}"
        if isinstance(self.state, _Calling):
            when = f"during the call of {json_string(self.state.directive.tool)}"
        return self.ended(Outcome.CANCELLED, f"its task was cancelled {when}")

    def ended(self, outcome: Outcome, detail: str, error: Exception | None = None) -> ChainResult:
        """Return the result of the chain, which ends now."""
        if self.state == _Returned(Absent()):
            # Whatever happens after the last result does not change the outcome.
            outcome, detail = Outcome.COMPLETED, "the last result names no further tool"
        # The details of invalid arguments are for people: the server chose the names in them.
        is_invalid = outcome is Outcome.INVALID_ARGUMENTS
        unfinished = self._unfinished("its arguments are not valid" if is_invalid else detail)
        steps = tuple(self.steps)
        return ChainResult(self.chain_id, outcome, detail, steps, unfinished, error)

    def _unfinished(self, detail: str) -> FollowUp | None:
        """Return the follow-up call that brought no result, if there is one."""
        listed, status = True, FollowUpStatus.NOT_MADE
        match self.state:
            case _Calling(directive, call) if self.steps:
                status = call.status
            case _Returned(Found(directive)):
                listed = False
            case _Checking(directive, listed):
                pass
            case _:
                return None
        level, first = len(self.steps) + 1, self.steps[0].tool
        return FollowUp(level, directive.tool, directive.arguments, status, detail, listed, first)


async def _tell(listener: Callable[[Any], Any] | None, news: Step | Proposal) -> None:
    """Call a listener, if there is one. It may be a plain or an async function."""
    returned = None if listener is None else listener(news)
    if inspect.isawaitable(returned):
        await returned


def _call_key(directive: Directive) -> tuple[str, str]:
    """Return a key that is the same for equal calls (TC-C-17).

    A first call whose arguments RFC 8785 cannot write equals no other call, since a directive with
    the same arguments would be malformed.
    """
    try:
        return directive.tool, canonical(directive.arguments)
    except (ValueError, RecursionError):
        return directive.tool, str(uuid.uuid4())
