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
"""

import inspect
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp_types import Tool
from pydantic import ValidationError

from tool_chaining.arguments import argument_problem
from tool_chaining.caller import (
    ToolCaller,
    advertised,
    awaited,
    check_result,
    read_tools,
    tool_result,
    without_result_check,
)
from tool_chaining.consent import ConsentPolicy, Proposal, check_policy
from tool_chaining.content import hidden_from_model
from tool_chaining.directive import (
    DEFAULT_LIMIT,
    Absent,
    Directive,
    Found,
    Malformed,
    Reading,
    read_directive,
)
from tool_chaining.doubt import CallKey, CallsInDoubt, calls_in_doubt
from tool_chaining.provenance import Provenance
from tool_chaining.refused import capture_http_status, was_refused
from tool_chaining.result import ChainResult, Outcome, Step, quoted
from tool_chaining.values import canonical

NOT_ADVERTISED: Final = "the server does not advertise tool chaining"
"""The detail of a chain that ended because of TC-C-03."""

DEFAULT_CALL_TIMEOUT: Final = 300.0
"""Seconds that one request may take by default."""

DEFAULT_TOTAL_TIMEOUT: Final = 3600.0
"""Seconds that a whole chain may take by default."""


class ChainStop:
    """Stops chains: pass it as `stop`, and call `stop()` in the same event loop.

    The current call is cancelled, and no other is started (TC-C-22). The chain then ends as
    `cancelled`, with the steps that were completed. A cancellation of the event loop (of the task)
    ends a chain too, but then only `on_end` receives the result.
    """

    def __init__(self) -> None:
        self.stopped = False
        """Whether `stop` was called."""
        self._scopes: set[anyio.CancelScope] = set()

    def stop(self) -> None:
        """Stop the chains that were given this object, and those that are given it later."""
        self.stopped = True
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Return a context whose content is cancelled by `stop`."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if self.stopped:
                    scope.cancel()
                yield
            finally:
                self._scopes.remove(scope)


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
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT,
    total_timeout: float | None = DEFAULT_TOTAL_TIMEOUT,
    on_step: OnStep | None = None,
    on_proposal: OnProposal | None = None,
    on_end: OnEnd | None = None,
    meta: dict[str, Any] | None = None,
    follow_unadvertised: bool = False,
    stop: ChainStop | None = None,
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
        call_timeout: Seconds that each request may take; None means no limit. `client.call_tool`
            receives it and must enforce it: only the client knows whether the server is slow or
            the user is being asked. `mcp.Client` does not know it on revision 2025-11-25. Reading
            the tool list counts as one request too.
        total_timeout: Seconds that the whole chain may take, with all questions to the user. None
            means no limit.
        on_step: Called with each step as soon as its result has arrived.
        on_proposal: Called with each follow-up call that can be made, before `consent` is asked.
        on_end: Called with the result of the chain, also if this function cannot return it because
            its task is cancelled. An `mcp.Client` over HTTP cancels the task when its connection
            breaks; `ResilientHttpClient` prevents that.
        meta: Further members for the `_meta` of every `tools/call`. Only the first call gets a
            `progressToken`.
        follow_unadvertised: Follow directives even if the server is not known to advertise the
            extension (TC-C-03). The user or the host decides that for this server.
        stop: An object that can stop the chain from outside.
        in_doubt: The calls of this session whose effect is unknown. No equal call is made unless
            `consent` has a method `allows_again` that agrees (TC-C-55). Default: those of the
            object `client`. A host that makes a new client for each call passes its own.

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
    chain = _Chain(
        client=client,
        limit=limit,
        consent=consent,
        call_timeout=call_timeout,
        on_step=on_step,
        on_proposal=on_proposal,
        meta=meta or {},
        follow_unadvertised=follow_unadvertised,
        stop=stop or ChainStop(),
        in_doubt=calls_in_doubt(client) if in_doubt is None else in_doubt,
    )
    try:
        with chain.stop.scope(), anyio.fail_after(total_timeout):
            result = await chain.run(name, arguments or {})
    except Exception as error:
        result = chain.failed(error)
    except BaseException:
        # The task was cancelled from outside. The cancellation must be raised again.
        if on_end is not None:
            on_end(chain.cancelled("its task was cancelled"))
        raise
    if chain.stop.stopped:
        # A chain that was stopped before its end is cancelled, even if a call failed too.
        result = chain.cancelled("the chain was stopped")
    if on_end is not None:
        on_end(result)
    return result


@dataclass
class _Chain:
    """The state of one running chain."""

    client: ToolCaller
    limit: int
    consent: ConsentPolicy | None
    call_timeout: float | None
    on_step: OnStep | None
    on_proposal: OnProposal | None
    meta: dict[str, Any]
    follow_unadvertised: bool
    stop: ChainStop
    in_doubt: CallsInDoubt
    chain_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list[Step] = field(default_factory=list[Step])
    made: set[CallKey] = field(default_factory=set[CallKey])
    pending: Directive | None = None
    listed: bool = False
    """Whether the tool of `pending` was found in the server's list."""
    started: Directive | None = None
    refused: bool = False
    complete: bool = False
    """Whether the last result names no further tool. Later errors do not change the outcome."""
    doing: str = "the start of the chain"
    """What the chain does now, for the message if it fails."""

    async def run(self, name: str, arguments: dict[str, Any]) -> ChainResult:
        directive, alias = Directive.model_construct(tool=name, arguments=arguments), False
        # A cancelled chain must not send a request. A client may send one before its first await.
        await anyio.lowlevel.checkpoint()
        while True:
            reading = await self._call(directive, alias)
            if isinstance(reading, Absent):
                return self.ended(Outcome.COMPLETED, "")
            if isinstance(reading, Malformed):
                return self.ended(Outcome.MALFORMED_DIRECTIVE, reading.reason)
            directive, alias = reading.directive, reading.deprecated_alias
            self.doing = f"the check before the call of {quoted(directive.tool)}"
            end = await self._obstacle(directive)
            if end is not None:
                return self.ended(*end)

    async def _call(self, directive: Directive, alias: bool) -> Reading:
        level, previous = len(self.steps) + 1, self.steps[-1].tool if self.steps else None
        self.doing = f"the call of {quoted(directive.tool)} (call {level})"
        call = _call_key(directive)
        self.made.add(call)
        self.in_doubt.add(call)
        self.pending, self.started = None, directive
        provenance = Provenance(self.chain_id, level, previous)
        with without_result_check(self.client), capture_http_status() as statuses:
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
                self.refused = was_refused(error, statuses)
                if self.refused:
                    self.in_doubt.discard(call)
                raise
        self.in_doubt.discard(call)
        reading = read_directive(result.meta)
        self.pending = reading.directive if isinstance(reading, Found) else None
        self.listed, self.started = False, None
        step = Step(level, directive.tool, directive.arguments, result, alias, directive.title)
        self.steps.append(step)
        self.doing = f"on_step after the call of {quoted(directive.tool)}"
        await _tell(self.on_step, step)
        self.doing = f"the client's check of what {quoted(directive.tool)} returned"
        with anyio.fail_after(self.call_timeout):
            await check_result(self.client, directive.tool, result)
        self.complete = isinstance(reading, Absent)
        return reading

    async def _obstacle(self, directive: Directive) -> tuple[Outcome, str] | None:
        """Return how the chain ends before `directive` is followed, or None if it goes on.

        This is the table of outcomes from the limit on (TC-C-27). If a cached tool list could end
        the chain, by its tools or its hints, the list is read again (TC-C-13). Consent is asked for
        once only.
        """
        # A cancelled chain asks no question.
        await anyio.lowlevel.checkpoint()
        name, call = quoted(directive.tool), _call_key(directive)
        if len(self.steps) >= self.limit:
            made = f"{len(self.steps)} calls were made, which is the limit"
            return Outcome.LIMIT_REACHED, f"{made}; {name} was not called"
        end, tool = None, None
        for mode in ("use", "refresh"):
            with anyio.fail_after(self.call_timeout):
                tools, kept = await read_tools(self.client, mode)
            tool = next((tool for tool in tools if tool.name == directive.tool), None)
            end = self._checked(directive, tool)
            hints = tool and tool.annotations
            harmless = hints and (hints.read_only_hint or hints.destructive_hint is False)
            if not kept or (end is None and harmless):
                break
        if end is not None or tool is None:
            return end
        level, previous = len(self.steps) + 1, self.steps[-1].tool
        proposal = Proposal(tool, directive.arguments, level, previous, directive.title)
        await _tell(self.on_proposal, proposal)
        if call not in self.in_doubt and not await self._agreed("allows", proposal):
            why = "" if self.consent else "; no consent policy was given: pass consent="
            return Outcome.DECLINED, f"the host did not consent to the call of {name}{why}"
        await anyio.lowlevel.checkpoint()
        # While the user was asked, another chain may have started the same call. There is no await
        # between this check and the call.
        if call in self.in_doubt:
            if not await self._agreed("allows_again", proposal):
                return Outcome.DECLINED, (
                    f"the same call of {name} was started before, whether it took effect is not "
                    "known, and nobody agreed to make it again"
                )
            await anyio.lowlevel.checkpoint()
        return None

    async def _agreed(self, question: str, proposal: Proposal) -> bool:
        """Return the answer of a method of the host's `ConsentPolicy`; False if it has none."""
        ask = getattr(self.consent, question, None)
        return ask is not None and bool(await ask(proposal))

    def _checked(self, directive: Directive, tool: Tool | None) -> tuple[Outcome, str] | None:
        """Return how the chain ends because of the listed tool, or None if it goes on."""
        name = quoted(directive.tool)
        self.listed = tool is not None
        if tool is None:
            return Outcome.UNKNOWN_TOOL, f"the server lists no tool {name}"
        problem = argument_problem(tool.input_schema, directive.arguments)
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
            reason = f"what the server sent is not valid MCP, at {quoted(place)}"
        else:
            # The message can come from the server. In quotes it does not look like our text.
            reason = quoted(str(error) or type(error).__name__)
        return self.ended(Outcome.FAILED, f"{self.doing} failed: {reason}", error)

    def cancelled(self, how: str) -> ChainResult:
        done = len(self.steps)
        during = f"during the call of {quoted(self.started.tool)}" if self.started else ""
        after = f"after {done} call{'' if done == 1 else 's'}"
        return self.ended(Outcome.CANCELLED, f"{how} {during or after}")

    def ended(self, outcome: Outcome, detail: str, error: Exception | None = None) -> ChainResult:
        if self.complete:
            outcome, detail = Outcome.COMPLETED, "the last result names no further tool"
        return ChainResult(
            self.chain_id,
            outcome,
            detail,
            tuple(self.steps),
            self.pending,
            self.listed,
            self.started if self.steps else None,
            self.refused,
            error,
        )


async def _tell(listener: Callable[[Any], Any] | None, news: Step | Proposal) -> None:
    """Call a listener, if there is one. It may be a plain or an async function."""
    returned = None if listener is None else listener(news)
    if inspect.isawaitable(returned):
        await returned


def _call_key(directive: Directive) -> CallKey:
    """Return a key that is the same for equal calls (TC-C-17).

    A first call whose arguments RFC 8785 cannot write equals no other call, since a directive with
    the same arguments would be malformed.
    """
    try:
        return directive.tool, canonical(directive.arguments)
    except (ValueError, RecursionError):
        return directive.tool, str(uuid.uuid4())
