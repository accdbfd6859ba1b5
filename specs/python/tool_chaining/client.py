"""The client half: call a tool, and follow the chain that its result begins.

    follower = Follower(client, consent=policy)
    chain = await follower.call_tool("prepare_money_transfer", {...})
    chain.raise_for_failure()
    for step in chain.steps:
        print(step.level, step.tool)

The client is an `mcp.Client`, or any other `ToolCaller`. Connect with `mcp.Client(...,
extensions=[CLIENT_EXTENSION])` to declare the extension to the server. Nothing inside the client
could do this: the SDK passes ordinary results to no client extension.

`_TABLE` is the table of outcomes. `_Chain.run` makes a call, then goes through the rows: the first
one that applies ends the chain, and if none does, it makes the next call.

**Never twice.** Each call of a chain is one `call_tool` of the client, and is never repeated here.
A second chain with an equal first call asks before it repeats a call of one that did not complete,
that had an error in a result, or whose result did not reach its caller (TC-C-55).
"""

import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from tool_chaining.arguments import unknown_members
from tool_chaining.caller import (
    INVALID_PARAMS,
    CallRefused,
    ToolCaller,
    as_json,
    check_caller,
    error_code,
    was_refused,
)
from tool_chaining.consent import ConsentPolicy, NobodyToAsk, Proposal, check_policy
from tool_chaining.content import Json, json_string
from tool_chaining.conversation import Conversation, Turn
from tool_chaining.directive import (
    DEFAULT_LIMIT,
    Absent,
    Directive,
    Found,
    Malformed,
    read_directive,
)
from tool_chaining.negotiation import capability, has_declared
from tool_chaining.provenance import Provenance
from tool_chaining.record import Answer, Entry
from tool_chaining.result import ChainResult, FollowUp, FollowUpStatus, Outcome, Step, answer_in
from tool_chaining.tools import Tool, ToolList
from tool_chaining.values import CallKey

if TYPE_CHECKING:
    from tool_chaining.rules import Rule, Rules

logger = logging.getLogger(__name__)

IN_DOUBT: Final = "an earlier call may have taken effect, and nobody agreed to repeat it"
"""Why a call in doubt is not made (TC-C-55)."""

UNNAMED: Final = "its name is left out, since no tool list of the server confirmed it"
"""Why a model does not see the name of a tool (TC-C-53)."""

OnStep = Callable[[Step], Awaitable[None] | None]
OnEnd = Callable[[ChainResult], Awaitable[None] | None]

_MISTAKES: Final = (Outcome.MALFORMED_DIRECTIVE, Outcome.UNKNOWN_TOOL, Outcome.INVALID_ARGUMENTS)
"""Outcomes caused by a mistake of the server. Each is reported to its operator once."""

_OF_EVERY_CALL: Final = {
    *(f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "logLevel")),
    *("io.modelcontextprotocol/clientCapabilities", "traceparent", "tracestate", "baggage"),
}
"""Members of `_meta` that describe the client or the trace, and so belong to all calls of a chain.
A progress token belongs to one request, and the meaning of other members is unknown here."""

DEFAULT_CALL_TIMEOUT: Final = 300.0
DEFAULT_TOTAL_TIMEOUT: Final = 3600.0
"""Seconds that one request and a whole chain may take by default."""

NOT_ADVERTISED: Final = "the server does not advertise tool chaining"
NOT_ASKED: Final = (
    "the client did not ask whether the server advertises tool chaining; an mcp.Client with a "
    "revision as its mode never asks"
)
"""The details of a chain that ended because of TC-C-03."""


@dataclass(kw_only=True)
class Follower:
    """A client that follows chains: one object for each connection.

    ::

        Follower(client)                                  # follows nothing: nobody consents
        Follower(client, consent=TrustHints())            # what the server's hints call harmless
        Follower(client, consent=AskUser(), limit=3)      # at most three calls in a chain
        Follower(client, consent=AskUser(), rules=Rules.load("rules.toml"))
        Follower(client, consent=AskUser(), follow_unadvertised=True)
        Follower(client, consent=AskUser(), validate=False)                # an untrusted server
        Follower(client, consent=AskUser(), call_timeout=60, total_timeout=600)         # seconds
        Follower(client, consent=AskUser(), on_step=print, on_end=deliver)
        Follower(new_client, consent=AskUser(), conversation=old.conversation)       # reconnected
        replace(follower, conversation=Conversation())    # a second user on the same connection

    Raises TypeError if `client`, `consent` or `rules` has the wrong type, and
    ValueError if `limit` is less than 1.
    """

    client: ToolCaller = field(kw_only=False)
    """A client that is connected to the server, and answers its questions."""
    consent: ConsentPolicy | None = None
    """Asked before each follow-up call. Without it no follow-up call is made (TC-C-21)."""
    conversation: Conversation = field(default_factory=Conversation)
    """The record of calls that another chain must not repeat unasked (TC-C-55)."""
    limit: int = DEFAULT_LIMIT
    """How many calls a chain makes at most, the first one included (TC-C-09)."""
    validate: bool = True
    """Whether to validate a directive's arguments before the call (TC-C-14). An untrusted server's
    schema could keep the validator busy for hours. The server validates them in any case."""
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT
    """Seconds that each request may take; None means no limit. The client enforces it for a call:
    only it knows whether the server is slow or the user is being asked. Reading the tool list
    counts as one request too."""
    total_timeout: float | None = DEFAULT_TOTAL_TIMEOUT
    """Seconds that a whole chain may take, without questions to the user and without waiting for
    other chains. None means no limit. A chain also waits up to this long for each earlier chain
    with an equal first call (TC-C-57)."""
    follow_unadvertised: bool = False
    """Whether to follow a server that is not known to advertise the extension (TC-C-03)."""
    on_step: OnStep | None = None
    """Called with each step as soon as its result has arrived. An exception is logged."""
    on_end: OnEnd | None = None
    """Called with the result of each chain, even if `call_tool` cannot return it because its task
    was cancelled. A host that writes the result to another program does so here: if this raises,
    the chain did not end well, and the exception is logged."""
    rules: "Rules | None" = None
    """The user's rules for results of this server without a directive."""
    tools: ToolList = field(default_factory=ToolList, repr=False)
    """The server's tools, as far as the client has read them."""

    def __post_init__(self) -> None:
        check_caller(self.client)
        check_policy(self.consent)
        if self.rules is not None and not hasattr(self.rules, "next"):
            kind = type(self.rules).__name__
            raise TypeError(f"rules must be tool_chaining.rules.Rules, from Rules.load, not {kind}")
        if self.limit < 1:
            raise ValueError(
                f"limit counts the first call too, so it must be at least 1, not {self.limit}"
            )

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> ChainResult:
        """Call the tool `name`, then every tool that the results name, on the same server.

        Cancel the task to stop a chain. An `mcp.Client` over HTTP cancels the task itself when its
        connection breaks.

        Args:
            name: The first tool. The caller chose it, so it needs no check and no consent.
            arguments: The arguments of the first call; none means `{}`.
            meta: Further members for the `_meta` of the first call. Follow-up calls get those that
                describe the client or the trace.

        Returns:
            Every completed step, and the outcome. If a call raised or time ran out, the outcome is
            `failed`; `raise_for_failure()` raises the exception.

        Raises:
            TypeError: `arguments` is not a dict.
        """
        if arguments is not None and not isinstance(arguments, dict):
            raise TypeError(f"arguments must be a dict, not {type(arguments).__name__}")
        chain, well = _Chain(self, Directive(name, arguments or {}), meta or {}), False
        outside = _CURRENT.set(chain)
        try:
            try:
                result = await chain.run_within(self.total_timeout)
            except BaseException:
                # The task was cancelled from outside. The cancellation must be raised again.
                await tell(self.on_end, chain.cancelled())
                raise
            well = await tell(self.on_end, result) and result.ended_well
            return result
        finally:
            _CURRENT.reset(outside)
            chain.end(well=well)

    def not_delivered(self, chain: ChainResult) -> None:
        """Note that a chain was cancelled when its result had already been handed over (TC-C-55).

        It takes effect only within a minute of the chain's end. The chain then counts as one that
        did not end well, and its calls are in doubt.
        """
        self.conversation.recall(chain.chain_id)

    def follows(self) -> bool:
        """Return whether directives of this server are followed (TC-C-03)."""
        capabilities, revision = self.client.server_capabilities, self.client.protocol_version
        return self.follow_unadvertised or has_declared(capabilities, revision)

    def why_not(self) -> str:
        """Say why this server is not followed. One that was asked has the capability `tools`."""
        declared = self.client.server_capabilities
        asked = isinstance(declared, Mapping) or capability(declared, "tools") is not None
        return NOT_ADVERTISED if asked else NOT_ASKED


class _Chain:
    """A running chain."""

    def __init__(self, host: Follower, first: Directive, meta: Json) -> None:
        self.host = host
        self.meta = meta
        self.next = first
        """The next call, or the one that is running."""
        self.key = CallKey.of(first.tool, first.arguments)
        """What the next call equals."""
        self.chain_id = str(uuid.uuid4())
        self.record = host.conversation.begin(self.chain_id, self.key)
        self.turn: Turn | None = None
        self.clock = anyio.CancelScope()
        """Its deadline is the end of the chain's own time."""
        self.steps: list[Step] = []
        self.made: set[CallKey] = set()
        self.running = False
        """Whether a call is running."""
        self.reading: Absent | Malformed | Found = Absent()
        """What the last result names, or a rule of the user in its place."""
        self.rule: Rule | None = None
        """The user's rule that asks for the next call, or for the one that is running."""
        self.unfilled = ""
        """Why the arguments of that rule could not be filled in."""
        self.pending: FollowUp | None = None
        """The call that the last result leads to, until it has a result itself."""
        self.tool = Tool(first.tool, {})
        """The tool of the next call, as the server lists it."""
        self.accepted: frozenset[Entry] = frozenset()
        """What the user knew to be in doubt when agreeing to the next call."""
        self.detail = ""
        """What people read about the end of the chain, if the model must not see it."""
        self.suggested = False
        """Whether nothing stopped the next call except that nobody could be asked."""

    async def run_within(self, total_timeout: float | None) -> ChainResult:
        """Return the result of the chain, whatever a call or the reading of a list raises."""
        try:
            with anyio.fail_after(total_timeout) as self.clock:
                return await self.run()
        except Exception as error:
            # A client can hide that it was cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
            return self.failed(error)

    async def run(self) -> ChainResult:
        """Make calls until a row of the table ends the chain.

        Raises what a call or the reading of the list raises: row 1. A cancellation is row 0.
        """
        # A cancelled chain must not send a request. A client may send one before its first await.
        await anyio.lowlevel.checkpoint_if_cancelled()
        while True:
            await self.call()
            for outcome, applies in _TABLE:
                if (reason := await applies(self)) is not None:
                    await anyio.lowlevel.checkpoint_if_cancelled()
                    return self.stopped(outcome, reason)

    async def call(self) -> None:
        """Make one call, record it, and read what its result names."""
        host, level, directive = self.host, len(self.steps) + 1, self.next
        previous = self.steps[-1].tool if self.steps else None
        provenance = Provenance(self.chain_id, level, previous).to_wire()
        self.made.add(self.key)
        self.running = True
        self.note_pending(status=FollowUpStatus.UNKNOWN)
        keep = not (self.tool.read_only and self.trusts_hints)
        entry = host.conversation.send(self.record, self.key, self.accepted, keep=keep)
        answer, revision = Answer.NONE, host.client.protocol_version
        try:
            result = as_json(
                await host.client.call_tool(
                    directive.tool,
                    directive.arguments,
                    read_timeout_seconds=host.call_timeout,
                    meta={**self.meta, **provenance},
                )
            )
            answer, problem = answer_in(result, revision)
            if problem:
                raise ValueError(problem)
        except Exception as error:
            if was_refused(error, revision):
                answer = Answer.REFUSED
                self.note_pending(status=FollowUpStatus.NOT_MADE)
            elif error_code(error) == INVALID_PARAMS:
                answer = Answer.FAILURE
            raise
        finally:
            host.conversation.answered(entry, answer)
        self.running, self.pending = False, None
        self.meta = {name: self.meta[name] for name in self.meta.keys() & _OF_EVERY_CALL}
        tool, arguments, by_rule = directive.tool, directive.arguments, self.rule is not None
        self.steps.append(Step(level, tool, arguments, result, directive.title, by_rule))
        self.read(result)
        await tell(host.on_step, self.steps[-1])

    def read(self, result: Json) -> None:
        """Read what a result names, or what a rule of the user adds to it (TC-C-58)."""
        host, reading = self.host, read_directive(result.get("_meta"))
        match = host.rules.next(self.steps, host.tools.note) if host.rules else None
        if match is not None and host.follows() and not isinstance(reading, Absent):
            number = match.rule.number
            host.tools.note(f"rule {number} was not used where the server names the next step")
            match = None
        self.reading, self.rule, self.unfilled = reading, None, ""
        if match is not None:
            self.reading, self.rule, self.unfilled = match.reading, match.rule, match.unfilled

    async def names_none(self) -> str | None:
        """Row 2: the result names no further tool."""
        return "the last result names no further tool" if self.is_complete else None

    async def is_not_followed(self) -> str | None:
        """Row 3: TC-C-03 forbids following this server's directives."""
        if self.rule is not None or self.host.follows():
            return None
        why = self.host.why_not()
        self.host.tools.note(f"a directive was not followed, because {why}")
        return why

    async def is_malformed(self) -> str | None:
        """Row 4: the directive is malformed, or a rule of the user cannot be evaluated."""
        if not isinstance(self.reading, Found):
            return self.reading.reason if isinstance(self.reading, Malformed) else None
        self.next = self.reading.directive
        self.key = CallKey.of(self.next.tool, self.next.arguments)
        self.pending = FollowUp(
            len(self.steps) + 1,
            self.next.tool,
            self.next.arguments,
            FollowUpStatus.NOT_MADE,
            listed=False,
            by_rule=self.rule is not None,
        )
        # A cancelled chain asks no question.
        await anyio.lowlevel.checkpoint()
        return None

    async def is_at_the_limit(self) -> str | None:
        """Row 5: the chain has as many calls as the limit allows."""
        calls = len(self.steps)
        return None if calls < self.host.limit else f"{calls} calls were made, which is the limit"

    async def is_not_listed(self) -> str | None:
        """Row 6: the server does not list the tool.

        The list is read again if a cached one is too old, does not have the tool or hides it, asks
        for consent by its hints, or rejects the arguments (TC-C-13).
        """
        host, name = self.host, self.next.tool
        tool = host.tools.fresh(name)
        if tool is None or tool.hidden or not tool.harmless or self.problem(tool) is not None:
            with anyio.fail_after(host.call_timeout):
                tool = await host.tools.read(host.client, name)
        if tool is None:
            return host.tools.why_missing(name)
        self.tool = tool
        self.note_pending(listed=True)
        return None

    async def has_invalid_arguments(self) -> str | None:
        """Row 7: the arguments are not valid, and the client validates them."""
        if self.unfilled:
            self.detail = self.unfilled
            return self.unfilled
        if (problem := self.problem(self.tool)) is None:
            return None
        # The server chose the names in the problem.
        source = f"the directive to {json_string(self.next.tool)}"
        self.detail = f"{source if self.rule is None else f'rule {self.rule.number}'}: {problem}"
        return "its arguments are not valid"

    def problem(self, tool: Tool) -> str | None:
        """Say why the arguments are not valid against the schema of the listed tool.

        A user who writes a rule can misspell a name, which many servers would ignore.
        """
        arguments, schema = self.next.arguments, tool.input_schema
        if self.rule is not None:
            for problem in unknown_members(arguments, schema, "arguments", tool.name):
                return problem
        if not self.host.validate:
            return None
        return self.host.tools.arguments.problem(tool.name, schema, arguments)

    async def is_a_cycle(self) -> str | None:
        """Row 8: the chain already contains an equal call."""
        was_made = self.key in self.made
        return "this chain already made the same call with the same arguments" if was_made else None

    async def is_hidden(self) -> str | None:
        """Row 9: the tool is hidden from the model."""
        return "it is not meant for the model to call" if self.tool.hidden else None

    async def is_not_allowed(self) -> str | None:
        """Row 9: the policy or the user does not allow the call (TC-C-20, TC-C-55).

        Waiting for a turn and for an answer is not the chain's own time.
        """
        host, previous, title = self.host, self.steps[-1].tool, self.next.title
        proposal = Proposal(
            self.tool, self.next.arguments, len(self.steps) + 1, previous, title, self.rule
        )
        with self.paused():
            if self.turn is None and not (self.tool.read_only and self.trusts_hints):
                turns = host.conversation.take_turn(self.record.first, host.total_timeout)
                self.turn = await turns
            return await self.refusal(proposal)

    async def refusal(self, proposal: Proposal) -> str | None:
        """Return why the call is not made, or None.

        Nothing awaits between the last look at the record and the call.
        """
        may_repeat = await self.agrees_beforehand(proposal)
        known: frozenset[Entry] | None = None
        while True:
            doubts = frozenset[Entry]()
            if not may_repeat:
                idempotent = self.tool.idempotent and self.trusts_hints
                doubts = self.host.conversation.doubts(self.record, self.key, idempotent=idempotent)
            if known is not None and doubts <= known:
                self.accepted = known
                return None
            if (reason := await self.answer(proposal, in_doubt=bool(doubts))) is not None:
                return reason
            known = doubts
            # The user may have cancelled, or another chain may have called the tool.
            await anyio.lowlevel.checkpoint()

    async def agrees_beforehand(self, proposal: Proposal) -> bool:
        """Return whether repetitions of this tool need no further yes (TC-C-55)."""
        if proposal.tool.read_only and self.trusts_hints:
            return True
        if proposal.rule is not None and proposal.rule.again:
            return True
        policy = self.host.consent
        return policy is not None and await _awaited(policy.may_repeat(proposal)) is True

    async def answer(self, proposal: Proposal, *, in_doubt: bool) -> str | None:
        """Ask the host's policy. Return None if it says yes, else why the call is not made."""
        answer: object
        policy, by_rule = self.host.consent, proposal.rule is not None and not proposal.rule.ask
        try:
            if policy is None and by_rule and not in_doubt:
                return None
            if policy is None:
                raise NobodyToAsk
            ask = policy.allows_again if in_doubt else policy.allows
            if by_rule and not in_doubt:
                answer = not await _awaited(policy.forbids(proposal))
            else:
                answer = await _awaited(ask(proposal))
        except NobodyToAsk:
            self.suggested = not in_doubt and proposal.rule is None
            return IN_DOUBT if in_doubt else "nobody could be asked to allow it"
        if answer is True:
            return None
        if answer is not False:
            what = f"{type(policy).__name__}.{ask.__name__} returned {type(answer).__name__}"
            logger.error("%s: only True is a yes, so the call is not made", what)
        return IN_DOUBT if in_doubt else "the host did not agree"

    @property
    def trusts_hints(self) -> bool:
        """Whether the user or the host trusts the hints of this server."""
        return self.host.consent is not None and self.host.consent.trusts_hints

    @property
    def is_complete(self) -> bool:
        """Whether the last result names no further tool. Nothing later changes that."""
        return bool(self.steps) and not self.running and isinstance(self.reading, Absent)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the chain's own time during the block."""
        left, self.clock.deadline = self.clock.deadline - anyio.current_time(), float("inf")
        try:
            yield
        finally:
            self.clock.deadline = anyio.current_time() + left

    def note_pending(self, **changes: Any) -> None:
        """Change what is known of the call that the last result leads to."""
        if self.pending is not None:
            self.pending = replace(self.pending, **changes)

    def end(self, *, well: bool) -> None:
        """Tell the record, and the chains that wait for this one."""
        self.host.conversation.end(self.record, well=well)
        if self.turn is not None:
            self.host.conversation.give_up_turn(self.turn)

    def stopped(self, outcome: Outcome, reason: str) -> ChainResult:
        """Return the result of a chain that a row of the table ends."""
        detail = self.detail or reason
        if self.pending is not None and not self.detail:
            detail = f"{json_string(self.next.tool)} was not called: {reason}"
        if self.rule is not None:
            self.host.tools.note(f"rule {self.rule.number} led to no call: {detail}")
        elif outcome in _MISTAKES:
            self.host.tools.note(f"a directive led to no call: {detail}")
        return self.result(outcome, detail, reason)

    def failed(self, error: Exception) -> ChainResult:
        """Return the result of a chain in which `error` was raised."""
        if isinstance(error, CallRefused) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        # The message can come from the server. In quotes it does not look like our text.
        reason = json_string(str(error) or type(error).__name__)
        if isinstance(error, TimeoutError):
            reason = "the time allowed for it ran out"
        if self.pending is not None and not self.pending.listed:
            reason = f"the server's tool list could not be read: {reason}"
        what = "the check before the call" if self.pending and not self.running else "the call"
        what = f"{what} of {json_string(self.next.tool)} (call {len(self.steps) + 1})"
        return self.result(Outcome.FAILED, f"{what} failed: {reason}", reason, error)

    def cancelled(self) -> ChainResult:
        """Return the result of a chain whose task was cancelled."""
        when = f"after call {len(self.steps)}"
        if self.running:
            when = f"during the call of {json_string(self.next.tool)}"
        detail = f"its task was cancelled {when}"
        return self.result(Outcome.CANCELLED, detail, detail)

    def result(
        self, outcome: Outcome, detail: str, reason: str, error: Exception | None = None
    ) -> ChainResult:
        """Return the result of the chain, which ends now."""
        if self.is_complete:
            outcome, detail = Outcome.COMPLETED, "the last result names no further tool"
        if self.pending is not None and not self.pending.listed:
            reason = f"{reason}; {UNNAMED}"
        self.note_pending(detail=reason, suggested=self.suggested)
        followed = self.host.follows()
        steps = tuple(self.steps)
        return ChainResult(
            self.chain_id, outcome, detail, steps, self.pending, error, followed=followed
        )


_TABLE: Final[tuple[tuple[Outcome, Callable[[_Chain], Awaitable[str | None]]], ...]] = (
    (Outcome.COMPLETED, _Chain.names_none),
    (Outcome.DECLINED, _Chain.is_not_followed),
    (Outcome.MALFORMED_DIRECTIVE, _Chain.is_malformed),
    (Outcome.LIMIT_REACHED, _Chain.is_at_the_limit),
    (Outcome.UNKNOWN_TOOL, _Chain.is_not_listed),
    (Outcome.INVALID_ARGUMENTS, _Chain.has_invalid_arguments),
    (Outcome.CYCLE, _Chain.is_a_cycle),
    (Outcome.DECLINED, _Chain.is_hidden),
    (Outcome.DECLINED, _Chain.is_not_allowed),
)
"""Rows 2 to 9 of the table of outcomes. Each says why it ends the chain, or returns None."""

_CURRENT: Final[ContextVar[_Chain | None]] = ContextVar("chain", default=None)
"""The chain of the current task."""


@contextmanager
def waiting_for_user(*, handed_out: bool = False) -> Iterator[None]:
    """Stop the time of the current chain while a tool's question waits for the user.

    `handed_out`: the question is in an interim result (`input_required`), and whoever has it may
    never answer. So the next chain with an equal first call goes on meanwhile (TC-C-57).
    """
    chain = _CURRENT.get()
    if chain is None:
        yield
        return
    turn, conversation = chain.turn, chain.host.conversation
    if handed_out and turn is not None:
        conversation.give_up_turn(turn)
    try:
        with chain.paused():
            yield
    finally:
        if handed_out and turn is not None:
            conversation.resume_turn(turn)


async def _awaited(given: object) -> object:
    """Return what a policy answers. Its methods may be plain or async functions."""
    return await given if inspect.isawaitable(given) else given


async def tell(listener: Callable[[Any], Any] | None, news: Any) -> bool:
    """Call a listener of a chain, if there is one. Return whether it raised no exception."""
    try:
        await _awaited(None if listener is None else listener(news))
    except Exception:
        logger.exception("a listener of a chain raised an exception")
        return False
    return True
