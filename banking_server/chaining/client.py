"""The client half: call a tool, and follow the chain that its result begins.

    result = await call_tool_with_chaining(client, "prepare_money_transfer", {...})
    for step in result.steps:
        print(step.level, step.tool)

The client is an `mcp.Client`, or any other object with its two methods `call_tool` and
`list_tools`: see `ToolCaller`. A function wraps the client, because the SDK shows ordinary results
to no client extension. Connect with `mcp.Client(..., extensions=[CLIENT_EXTENSION])` to declare the
extension to the server.

**Never twice.** Each call of a chain is one `call_tool` of the client, and none is repeated here:
where its answer is lost, the chain fails, and says that nobody knows whether the call took effect
(TC-C-39); where the server refused it before it acted, that it was not made. Neither does
`mcp.Client` send a request again whose answer it lost: a stream that breaks off is resumed where
the server can do that (a GET with `Last-Event-ID`, which calls nothing), and otherwise, as with a
session that has expired, the call raises. It sends a request again only where the server refused
the first one before it acted: after 401 or 403 with more authorization, after a header mismatch
with new headers, and in the rounds of a question to the user. All that is one call (TC-C-11). A
client of your own must do no more.
"""

import inspect
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel
from mcp_types import CallToolResult, Tool
from pydantic import BaseModel

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.caller import (
    ToolCaller,
    advertised,
    awaited,
    noting_refusal,
    tool_result,
)
from banking_server.chaining.catalog import ToolCatalog
from banking_server.chaining.consent import (
    ConsentPolicy,
    FollowNonDestructive,
    Proposal,
    check_policy,
)
from banking_server.chaining.content import hidden_from_model
from banking_server.chaining.directive import (
    DEFAULT_LIMIT,
    Absent,
    Directive,
    Found,
    Malformed,
    Reading,
    read_directive,
)
from banking_server.chaining.doubt import CallKey, CallsInDoubt, calls_in_doubt
from banking_server.chaining.provenance import Provenance
from banking_server.chaining.refused import noting_answers, was_refused
from banking_server.chaining.result import ChainFailed, ChainResult, Outcome, Step, quoted
from banking_server.chaining.values import canonical

REASON: Final = 200
"""Characters that are told, at most, of what a client's exception says."""

DEFAULT_CALL_TIMEOUT: Final = 300.0
"""Seconds that one request may take, if nobody chose others."""

DEFAULT_TOTAL_TIMEOUT: Final = 3600.0
"""Seconds that a whole chain may take, if nobody chose others."""

MAX_KEPT: Final = 8 * 1024 * 1024
"""About so many characters of JSON a chain's results may have; beyond them it makes no call."""

_OF_A_VALUE: Final = 20
"""Characters that are counted for each value of a result, for the room that it takes by itself."""


class ChainStop:
    """A way to stop chains: pass it as `stop`, and call `stop()` in the same event loop.

    A call that is under way is cancelled, and no other is started (TC-C-22). The chain then ends as
    `cancelled`, with the steps that were completed. To pass on a cancellation of the event loop's
    own needs no `ChainStop`: it ends a chain too, but only `on_end` is then told the result.
    """

    def __init__(self) -> None:
        self._stopped = False
        self._scopes: set[anyio.CancelScope] = set()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self) -> None:
        """Stop the chains that run with it, and any that begin with it later."""
        self._stopped = True
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Let what runs inside be ended by `stop`."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if self._stopped:
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
    catalog: ToolCatalog | None = None,
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
        client: A client that is connected to the server. While a call runs, the client answers the
            server's questions; they belong to that call.
        name: The first tool. The caller chose it, so it is not checked, and no consent is asked
            for it.
        arguments: The arguments of the first call; none means `{}`.
        limit: How many calls are made at most, the first one included.
        consent: Asked before each follow-up call. Without it nobody consents, and no call is made
            (TC-C-21). For a server whose hints the user trusts, `FollowNonDestructive()`.
        catalog: The server's tools, if the caller keeps them from one chain to the next.
        call_timeout: Seconds that each request may take; None means no limit. It is passed on to
            `client.call_tool`, which keeps it: only the client can tell a slow server from a user
            who is being asked. `mcp.Client` cannot on revision 2025-11-25. No progress that the
            server reports makes it longer.
            Reading the tool list counts as one request, and is ended here. So is the check that an
            `mcp.Client` makes of structured content, for which it may list the tools too.
        total_timeout: Seconds that the whole chain may take, questions to the user included, and
            whatever the client does (TC-C-23). None means no limit from here.
        on_step: Told of each step as soon as its result is there.
        on_proposal: Told of each follow-up call that can be made, before consent is asked for.
        on_end: Told how the chain ended, whatever ended it: also where this function can neither
            return nor raise a result, since the task that called it is cancelled. An `mcp.Client`
            over HTTP cancels the task that entered it when its connection breaks;
            `SteadyHttpClient` keeps it from that.
        meta: Further members for the `_meta` of every `tools/call`. A `progressToken` goes with
            the first one only.
        follow_unadvertised: Follow directives even if the server is not known to advertise the
            extension (TC-C-03). The user or the host decides that for this server.
        stop: Something that can end the chain from outside.
        in_doubt: The calls of this session whose effect is unknown; no equal call is made unless
            `consent` has a method `allows_again` and it agrees (TC-C-55). By default those of the
            object `client`: a host that makes a new one for each call passes its own.

    Returns:
        Every step, and the outcome, which is any but `failed`.

    Raises:
        ChainFailed: A call raised, or time ran out. It holds the steps that were completed.
        ValueError: `limit` is less than 1.
        TypeError: `consent` is no policy.
    """
    check_policy(consent)
    if limit < 1:
        raise ValueError(f"limit counts the first call too, so it must be at least 1, not {limit}")
    chain = _Chain(
        client=client,
        limit=limit,
        consent=consent,
        catalog=catalog or ToolCatalog(client),
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
        if not chain.stop.stopped:
            failed = chain.failed(error)
            _end(on_end, failed)
            raise ChainFailed(failed) from error
    except BaseException:
        # Cancelled from outside. That must go on, and can take no result along.
        _end(on_end, chain.cancelled("its task was cancelled"))
        raise
    if chain.stop.stopped:
        # Whatever else is the case, a chain that was stopped is cancelled.
        result = chain.cancelled("the chain was stopped")
    _end(on_end, result)
    return result


def _end(on_end: OnEnd | None, result: ChainResult) -> None:
    if on_end is not None:
        on_end(result)


@dataclass(frozen=True)
class _End:
    """Why a chain ends before its next call."""

    outcome: Outcome
    detail: str


@dataclass
class _Chain:
    """One chain under way."""

    client: ToolCaller
    limit: int
    consent: ConsentPolicy | None
    catalog: ToolCatalog
    call_timeout: float | None
    on_step: OnStep | None
    on_proposal: OnProposal | None
    meta: dict[str, Any]
    follow_unadvertised: bool
    stop: ChainStop
    in_doubt: CallsInDoubt
    chain_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list[Step] = field(default_factory=list[Step])
    made: set[CallKey | None] = field(default_factory=set[CallKey | None])
    arrived: float = 0
    """When the last result arrived, by the clock of the catalog."""
    kept: int = 0
    """The size of the results, in characters."""
    pending: Directive | None = None
    listed: bool = False
    """Whether the tool of `pending` was found in the server's list."""
    started: Directive | None = None
    refused: bool = False
    doing: str = "the start of the chain"

    async def run(self, name: str, arguments: dict[str, Any]) -> ChainResult:
        directive, alias = Directive.model_construct(tool=name, arguments=arguments), False
        while True:
            reading = await self._call(directive, alias)
            if isinstance(reading, Absent):
                return self.ended(Outcome.COMPLETED, "the last result names no further tool")
            if isinstance(reading, Malformed):
                return self.ended(Outcome.MALFORMED_DIRECTIVE, reading.reason)
            directive, alias = reading.directive, reading.deprecated_alias
            self.doing = f"the check before the call of {quoted(directive.tool)}"
            end = await self._obstacle(directive)
            if end is not None:
                return self.ended(end.outcome, end.detail)

    async def _call(self, directive: Directive, alias: bool) -> Reading:
        # A client can send a request before it first waits; a cancelled chain must send none.
        await anyio.lowlevel.checkpoint()
        self.doing = f"the call of {quoted(directive.tool)} (call {len(self.steps) + 1})"
        call = _call_key(directive)
        self.made.add(call)
        if call is not None:
            self.in_doubt.add(call)
        self.pending, self.started = None, directive
        provenance = Provenance(
            chain_id=self.chain_id,
            level=len(self.steps) + 1,
            previous_tool=self.steps[-1].tool if self.steps else None,
        )
        step = partial(
            Step,
            provenance.level,
            directive.tool,
            directive.arguments,
            deprecated_alias=alias,
            title=directive.title,
        )
        with noting_refusal(self.client, self.call_timeout) as refusal, noting_answers() as answer:
            try:
                returned = self.client.call_tool(
                    directive.tool,
                    directive.arguments,
                    read_timeout_seconds=self.call_timeout,
                    meta={**self.meta, **provenance.to_wire()},
                )
                # The token was given out for the first call (TC-C-46).
                self.meta = {k: value for k, value in self.meta.items() if k != "progressToken"}
                result = tool_result(await awaited(returned, "call_tool"))
            except BaseException as error:
                if error is refusal.error and refusal.result is not None:
                    self.doing = f"the client's check of what {quoted(directive.tool)} returned"
                    self._arrived(step(result=refusal.result))
                    self._is_known(call)
                    if isinstance(error, Exception):
                        await _tell(self.on_step, self.steps[-1])
                elif isinstance(error, Exception):
                    self.refused = was_refused(error, answer)
                    self._is_known(call if self.refused else None)
                raise
        self._is_known(call)
        reading = self._arrived(step(result=result))
        self.doing = f"on_step after the call of {quoted(directive.tool)}"
        await _tell(self.on_step, self.steps[-1])
        return reading

    def _is_known(self, call: CallKey | None) -> None:
        """Forget a call whose effect is known; earlier ones that equal it stay in doubt."""
        if call is not None:
            self.in_doubt.discard(call)

    def _arrived(self, step: Step) -> Reading:
        """Take note of a result, and read its directive."""
        self.arrived = self.catalog.now()
        self.steps.append(step)
        self.kept += _size(step.result)
        reading = read_directive(step.result.meta)
        self.pending = reading.directive if isinstance(reading, Found) else None
        self.listed, self.started = False, None
        return reading

    async def _obstacle(self, directive: Directive) -> _End | None:
        """Return how the chain ends before `directive` is followed, or None if it goes on.

        The rows of the table of outcomes are gone through from the limit on (TC-C-27). A list of
        tools that was read before the directive arrived is read once more where it could end the
        chain (TC-C-13). That is so too if consent could go by better hints: it is asked for once,
        since a person's no stands.
        """
        # Nobody is asked about a chain that is cancelled.
        await anyio.lowlevel.checkpoint()
        if len(self.steps) >= self.limit:
            return _End(
                Outcome.LIMIT_REACHED,
                f"{len(self.steps)} calls were made, which is the limit; "
                f"{quoted(directive.tool)} was not called",
            )
        with anyio.fail_after(self.call_timeout):
            tools = await self.catalog.for_directive(self.arrived)
        checked = self._checked(directive, tools.find(directive.tool))
        older = tools.read_at < self.arrived
        if older and (isinstance(checked, _End) or not self._hints_suffice(checked)):
            with anyio.fail_after(self.call_timeout):
                tools = await self.catalog.read()
            checked = self._checked(directive, tools.find(directive.tool))
        return checked if isinstance(checked, _End) else await self._declined(directive, checked)

    def _checked(self, directive: Directive, tool: Tool | None) -> _End | Tool:
        """Return `tool`, which the server lists under the name, or how it ends the chain."""
        if tool is None:
            return _End(
                Outcome.UNKNOWN_TOOL,
                f"the server lists no tool {quoted(directive.tool)}, or several different ones",
            )
        self.listed = True
        problem = argument_problem(tool.input_schema, directive.arguments)
        if problem is not None:
            return _End(
                Outcome.INVALID_ARGUMENTS, f"the directive to {quoted(directive.tool)}: {problem}"
            )
        if _call_key(directive) in self.made:
            return _End(
                Outcome.CYCLE,
                f"{quoted(directive.tool)} was already called with the same arguments in this "
                "chain",
            )
        if hidden_from_model(tool.meta):
            return _End(Outcome.DECLINED, f"{quoted(tool.name)} is not meant for the model to call")
        if not (self.follow_unadvertised or advertised(self.client)):
            return _End(
                Outcome.DECLINED,
                "the server is not known to support tool chaining, and following it all the same "
                "was not allowed",
            )
        if self.kept > MAX_KEPT:
            return _End(
                Outcome.DECLINED,
                f"the results so far have more than {MAX_KEPT:,} characters, beyond which this "
                "client makes no further call",
            )
        return tool

    def _hints_suffice(self, tool: Tool) -> bool:
        """Return whether no newer hints could win the consent that these do not."""
        hints = tool.annotations
        if hints is None:
            return False
        harmless = hints.destructive_hint is False and isinstance(
            self.consent, FollowNonDestructive
        )
        return harmless or hints.read_only_hint is True

    async def _declined(self, directive: Directive, tool: Tool) -> _End | None:
        """Return how the chain ends if the host does not consent, and None if it does."""
        proposal = Proposal(
            tool,
            directive.arguments,
            len(self.steps) + 1,
            previous_tool=self.steps[-1].tool,
            title=directive.title,
        )
        await _tell(self.on_proposal, proposal)
        call = _call_key(directive)
        if call is not None and call in self.in_doubt:
            again = getattr(self.consent, "allows_again", None)
            if again is None or not await again(proposal):
                return _End(
                    Outcome.DECLINED,
                    f"the same call of {quoted(tool.name)} was started before, whether it took "
                    "effect is not known, and nobody agreed to make it again",
                )
        if self.consent is None or not await self.consent.allows(proposal):
            return _End(
                Outcome.DECLINED, f"the host did not consent to the call of {quoted(tool.name)}"
            )
        return None

    def failed(self, error: Exception) -> ChainResult:
        """Return how the chain ended if a call, or what comes between two calls, raised."""
        if isinstance(error, TimeoutError):
            reason = "the time allowed for it ran out"
        else:
            # Anybody can have written it: in quotes it cannot be taken for our own words.
            reason = json.dumps((str(error) or type(error).__name__)[:REASON], ensure_ascii=False)
        return self.ended(Outcome.FAILED, f"{self.doing} failed: {reason}")

    def cancelled(self, how: str) -> ChainResult:
        done = len(self.steps)
        during = f"during the call of {quoted(self.started.tool)}" if self.started else ""
        after = f"after {done} call{'' if done == 1 else 's'}"
        return self.ended(Outcome.CANCELLED, f"{how} {during or after}")

    def ended(self, outcome: Outcome, detail: str) -> ChainResult:
        return ChainResult(
            self.chain_id,
            outcome,
            detail,
            tuple(self.steps),
            self.pending,
            self.listed,
            self.started if self.steps else None,
            self.refused,
        )


_News = TypeVar("_News", Step, Proposal)


async def _tell(listener: Callable[[_News], Awaitable[None] | None] | None, news: _News) -> None:
    """Tell a listener that may be absent, and that may be a plain or an async function."""
    told = None if listener is None else listener(news)
    if inspect.isawaitable(told):
        await told


def _size(result: CallToolResult) -> int:
    size = 0
    left: list[Any] = [result]
    while left:
        value = left.pop()
        size += _OF_A_VALUE
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, BaseModel):
            left.append(dict(value))
    return size


def _call_key(directive: Directive) -> CallKey | None:
    """Return what two equal calls have in common (TC-C-17); None for arguments like no others.

    Only a first call can have those: a directive that RFC 8785 cannot write is malformed.
    """
    try:
        return directive.tool, canonical(directive.arguments)
    except (ValueError, RecursionError):
        return None
