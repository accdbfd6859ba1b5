"""The client half: call a tool, and follow the chain that its result begins.

    follower = Follower(client, consent=policy)
    chain = await follower.call_tool("prepare_money_transfer", {...})
    chain.raise_for_failure()
    for step in chain.steps:
        print(step.level, step.tool)

The client is an `mcp.Client`, or any other `ToolCaller`. Connect with `mcp.Client(...,
extensions=[CLIENT_EXTENSION])` to declare the extension to the server. Nothing inside the client
could do this: the SDK passes ordinary results to no client extension.

**Never twice.** Each call of a chain is one `call_tool` of the client, and is never repeated here.
If its response is lost, the chain fails and says that the effect of the call is unknown. No later
chain of the conversation calls the same tool again without asking (TC-C-55).
"""

import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from tool_chaining.caller import (
    CallRefused,
    ToolCaller,
    as_json,
    check_caller,
    was_refused,
)
from tool_chaining.consent import ConsentPolicy, NobodyToAsk, Proposal, check_policy
from tool_chaining.content import Json, is_error, json_string, malformed_members
from tool_chaining.conversation import CallKey, Conversation, Doubt
from tool_chaining.directive import (
    DEFAULT_LIMIT,
    META_KEY,
    Absent,
    Directive,
    Found,
    Malformed,
    read_directive,
)
from tool_chaining.negotiation import NEGOTIATED_FROM, capability, has_declared
from tool_chaining.provenance import Provenance
from tool_chaining.result import ChainResult, FollowUp, FollowUpStatus, Outcome, Step
from tool_chaining.tools import Tool, ToolList

if TYPE_CHECKING:
    from tool_chaining.rules import Rule, Rules

logger = logging.getLogger(__name__)

NOT_ADVERTISED: Final = "the server does not advertise tool chaining"
NOT_ASKED: Final = (
    "the client did not ask whether the server advertises tool chaining; an mcp.Client with a "
    "revision as its mode never asks"
)
"""The details of a chain that ended because of TC-C-03."""

UNNAMED: Final = "its name is left out, since no tool list of the server confirmed it"
"""Why a model does not see the name of a tool (TC-C-53)."""

DEFAULT_CALL_TIMEOUT: Final = 300.0
"""Seconds that one request may take by default."""

DEFAULT_TOTAL_TIMEOUT: Final = 3600.0
"""Seconds that a whole chain may take by default."""

OnStep = Callable[[Step], Awaitable[None] | None]
OnEnd = Callable[[ChainResult], None]

_MISTAKES: Final = (Outcome.MALFORMED_DIRECTIVE, Outcome.UNKNOWN_TOOL, Outcome.INVALID_ARGUMENTS)
"""Outcomes caused by a mistake of the server. Each is reported to its operator once."""

_OF_EVERY_CALL: Final = {
    *(f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "logLevel")),
    *("io.modelcontextprotocol/clientCapabilities", "traceparent", "tracestate", "baggage"),
}
"""Members of `_meta` that describe the client or the trace, and so belong to all calls of a chain.
A progress token belongs to one request, and the meaning of other members is unknown here."""


@dataclass(kw_only=True)
class Follower:
    """A client that follows chains: one object for each connection.

    A second conversation on the same connection is `dataclasses.replace(follower,
    conversation=Conversation())`. A new connection in the same conversation is `Follower(client,
    consent=policy, conversation=follower.conversation)`.

    Raises TypeError if `client`, `consent` or `rules` has the wrong type, and
    ValueError if `limit` is less than 1.
    """

    client: ToolCaller = field(kw_only=False)
    """A client that is connected to the server, and answers its questions."""
    consent: ConsentPolicy | None = None
    """Asked before each follow-up call. Without it no follow-up call is made (TC-C-21).
    `TrustHints()` is for a server whose hints the user trusts."""
    conversation: Conversation = field(default_factory=Conversation)
    """The record of calls that could be made twice (TC-C-55)."""
    limit: int = DEFAULT_LIMIT
    """How many calls a chain makes at most, the first one included (TC-C-09)."""
    validate: bool = True
    """Whether to validate a directive's arguments before the call (TC-C-14). Set it to False for an
    untrusted server: its schema could keep the validator busy for hours. The server validates the
    arguments in any case."""
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT
    """Seconds that each request may take; None means no limit. The client enforces it for a call:
    only it knows whether the server is slow or the user is being asked. Reading the tool list
    counts as one request too."""
    total_timeout: float | None = DEFAULT_TOTAL_TIMEOUT
    """Seconds that a whole chain may take, with all questions to the user. None means no limit."""
    follow_unadvertised: bool = False
    """Whether to follow a server that is not known to advertise the extension (TC-C-03). The user
    or the host decides."""
    on_step: OnStep | None = None
    """Called with each step as soon as its result has arrived."""
    on_end: OnEnd | None = None
    """Called with the result of each chain, even if `call_tool` cannot return it because its task
    was cancelled. Exceptions of these two functions are logged and otherwise ignored."""
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

        Cancel the task to stop a chain (TC-C-22). An `mcp.Client` over HTTP cancels the task itself
        when its connection breaks.

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
        first = CallKey.of(name, arguments or {})
        chain = _Chain(self, first, meta or {}, first)
        try:
            try:
                with anyio.fail_after(self.total_timeout):
                    result = await chain.run(Directive(name, arguments or {}))
            except Exception as error:
                # A client can hide that it was cancelled.
                await anyio.lowlevel.checkpoint_if_cancelled()
                result = chain.failed(error)
        except BaseException:
            # The task was cancelled from outside. The cancellation must be raised again.
            result = chain.cancelled()
            self.not_delivered(result)
            await tell(self.on_end, result)
            raise
        await tell(self.on_end, result)
        return result

    def not_delivered(self, chain: ChainResult) -> None:
        """Record that the result of a chain did not reach its caller (TC-C-55).

        `call_tool` does so itself if its task is cancelled. Call this in a host that drops a
        returned result, for example because its own client is gone.
        """
        keys = [CallKey.of(step.tool, step.arguments) for step in chain.steps]
        if keys:
            self.conversation.not_delivered(keys[0], keys[1:])

    def follows(self) -> bool:
        """Return whether directives of this server are followed (TC-C-03)."""
        capabilities, revision = self.client.server_capabilities, self.client.protocol_version
        return self.follow_unadvertised or has_declared(capabilities, revision)

    def why_not(self) -> str:
        """Say why this server is not followed. One that was asked has the capability `tools`."""
        declared = self.client.server_capabilities
        asked = isinstance(declared, Mapping) or capability(declared, "tools") is not None
        return NOT_ADVERTISED if asked else NOT_ASKED


class _Ends(Exception):
    """The chain ends before its next call."""

    def __init__(
        self, outcome: Outcome, detail: str, reason: str = "", *, suggested: bool = False
    ) -> None:
        """`detail` is for people, and `reason`, by default the same, for the model too.

        `suggested`: nothing stopped the call except that nobody could be asked.
        """
        super().__init__(detail)
        self.outcome, self.detail, self.reason = outcome, detail, reason or detail
        self.suggested = suggested


@dataclass
class _Chain:
    """A running chain."""

    follower: Follower
    first: CallKey
    meta: dict[str, Any]
    key: CallKey
    """The running call, or the one that the last directive asks for."""
    chain_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list[Step] = field(default_factory=list[Step])
    made: set[CallKey] = field(default_factory=set[CallKey])
    pending: FollowUp | None = None
    """The call that the last directive asks for, until it has its result."""
    calling: bool = False
    """Whether a call is running; it is the first one if none is pending."""
    rule: "Rule | None" = None
    """The user's rule that asks for the next call, or for the one that is made."""
    completed: bool = False
    """Whether the last result names no further tool. Nothing later changes that."""

    async def run(self, directive: Directive) -> ChainResult:
        """Make the first call, then follow directives until a row of the table ends the chain.

        Raises what a call or the list raises.
        """
        # A cancelled chain must not send a request. A client may send one before its first await.
        await anyio.lowlevel.checkpoint_if_cancelled()
        tool, agreed = None, frozenset[Doubt]()
        try:
            while True:
                result = await self._call(directive, tool, agreed)
                if self.completed:
                    return self.ended(Outcome.COMPLETED, "")
                directive = self._next(result)
                tool = await self._found(directive)
                agreed = await self._agreed(directive, tool)
        except _Ends as end:
            await anyio.lowlevel.checkpoint_if_cancelled()
            if self.rule is not None:
                number = self.rule.number
                why = end.detail.removeprefix(f"rule {number}: ")
                self.follower.tools.note(f"rule {number} led to no call: {why}")
            elif end.outcome in _MISTAKES:
                self.follower.tools.note(f"a directive led to no call: {end.detail}")
            return self.ended(end.outcome, end.detail, end.reason, suggested=end.suggested)

    async def _call(
        self, directive: Directive, tool: Tool | None, agreed: frozenset[Doubt]
    ) -> Json:
        """Make one call, record it, and tell the host of its result."""
        host, level = self.follower, len(self.steps) + 1
        previous = self.steps[-1].tool if self.steps else None
        key = self.key
        provenance = Provenance(self.chain_id, level, previous).to_wire()
        self.made.add(key)
        self.calling = True
        self._pending(status=FollowUpStatus.UNKNOWN)
        with host.conversation.call(key, self.first, agreed) as running:
            try:
                received = await host.client.call_tool(
                    directive.tool,
                    directive.arguments,
                    read_timeout_seconds=host.call_timeout,
                    meta={**self.meta, **provenance},
                )
            except Exception as error:
                if was_refused(error):
                    running.refused = True
                    self._pending(status=FollowUpStatus.NOT_MADE)
                raise
            result = as_json(received)
            if problem := self._incomplete(result):
                # A task keeps running and its server knows it: only a repetition is in doubt.
                running.everywhere = result.get("task") is None
                raise ValueError(problem)
            may_repeat = tool is not None and tool.idempotent and self._trusts_hints
            running.in_doubt = level > 1 and is_error(result) and not may_repeat
            running.everywhere = False
        if not is_error(result):
            host.conversation.settle(key)
        self.calling, self.pending = False, None
        meta = result.get("_meta")
        names_none = not isinstance(meta, dict) or META_KEY not in meta
        self.completed = names_none and not host.rules
        self.meta = {name: self.meta[name] for name in self.meta.keys() & _OF_EVERY_CALL}
        step = Step(
            level,
            directive.tool,
            directive.arguments,
            result,
            directive.title,
            self.rule is not None,
            received,
        )
        self.steps.append(step)
        for problem in malformed_members(result):
            host.tools.note(problem)
        await tell(host.on_step, step)
        return result

    def _incomplete(self, result: Json) -> str | None:
        """Say why a result is not the complete result of a call; None if it is."""
        revision = self.follower.client.protocol_version or ""
        if result.get("task") is not None and revision < NEGOTIATED_FROM:
            return "it was answered with a task, for whose result this client does not wait"
        kind = result.get("resultType")
        if kind == "input_required":
            return "its answer asks for input that this client did not give"
        if kind == "complete" or not isinstance(kind, str):
            return None
        return f"its answer has the unknown resultType {kind!r}"

    def _next(self, result: Json) -> Directive:
        """Return what the last result names, or what a rule of the user adds to it (TC-C-58)."""
        host, reading = self.follower, read_directive(result.get("_meta"))
        followed = host.follows()
        match, self.rule = None, None
        if followed and isinstance(reading, Malformed):
            raise _Ends(Outcome.MALFORMED_DIRECTIVE, reading.reason)
        if followed and isinstance(reading, Found):
            found = reading.directive
        elif host.rules and (match := host.rules.next(self.steps, host.tools.note)):
            found, self.rule = match.directive, match.rule
        elif isinstance(reading, Absent):
            self.completed = True
            raise _Ends(Outcome.COMPLETED, "")
        else:
            host.tools.note(f"a directive was not followed, because {host.why_not()}")
            raise _Ends(Outcome.DECLINED, host.why_not())
        level, not_made, by_rule = len(self.steps) + 1, FollowUpStatus.NOT_MADE, match is not None
        self.pending = FollowUp(
            level, found.tool, found.arguments, not_made, listed=False, by_rule=by_rule
        )
        if match and match.problem:
            raise _Ends(Outcome.INVALID_ARGUMENTS, match.problem)
        return found

    async def _found(self, directive: Directive) -> Tool:
        """Check the table of outcomes from the limit down, until only consent is missing.

        If a cached list would end the chain, by its tools or its hints, read it again (TC-C-13).
        """
        # A cancelled chain asks no question.
        await anyio.lowlevel.checkpoint()
        host, name = self.follower, json_string(directive.tool)
        if len(self.steps) >= host.limit:
            reason = f"{len(self.steps)} calls were made, which is the limit"
            raise _Ends(Outcome.LIMIT_REACHED, f"{reason}; {name} was not called", reason)
        self.key = CallKey.of(directive.tool, directive.arguments)
        tool = host.tools.fresh(directive.tool)
        if tool is None or not tool.harmless or self._problem(directive, tool) is not None:
            with anyio.fail_after(host.call_timeout):
                tool = await host.tools.read(host.client, directive.tool)
        if tool is None:
            why = host.tools.why_missing(directive.tool)
            raise _Ends(Outcome.UNKNOWN_TOOL, f"no call of {name} was made: {why}", why)
        self._pending(listed=True)
        if (problem := self._problem(directive, tool)) is not None:
            raise problem
        return tool

    def _problem(self, directive: Directive, tool: Tool) -> _Ends | None:
        """Return how the chain ends because of the listed tool, or None if it goes on."""
        name = json_string(directive.tool)
        if self.follower.validate:
            problem = self.follower.tools.arguments.problem(
                tool.name, tool.input_schema, directive.arguments
            )
            if problem is not None:
                # The details are for people: the server chose the names in them.
                detail = f"the directive to {name}: {problem}"
                return _Ends(Outcome.INVALID_ARGUMENTS, detail, "its arguments are not valid")
        if self.key in self.made:
            reason = "this chain already made the same call with the same arguments"
            return _Ends(Outcome.CYCLE, f"{name} was not called: {reason}", reason)
        if tool.hidden:
            reason = "it is not meant for the model to call"
            return _Ends(Outcome.DECLINED, f"{name} is not meant for the model to call", reason)
        return None

    async def _agreed(self, directive: Directive, tool: Tool) -> frozenset[Doubt]:
        """Ask for consent, and return the doubts that the user knew about (TC-C-55).

        Nothing awaits between the last look at the record and the call.
        """
        host, level = self.follower, len(self.steps) + 1
        previous = self.steps[-1].tool
        arguments, title = directive.arguments, directive.title
        proposal = Proposal(tool, arguments, level, previous, title, self.rule)
        known: frozenset[Doubt] | None = None
        while True:
            await host.conversation.wait_for_equal(tool.name, self.first)
            doubts = host.conversation.doubts(tool.name, self.first)
            if tool.read_only and self._trusts_hints:
                doubts = frozenset()
            if known is not None and doubts <= known:
                return known
            if self.rule is None or self.rule.ask or doubts:
                await self._ask(proposal, in_doubt=bool(doubts))
            elif host.consent is not None and await _answer(host.consent.forbids(proposal)):
                reason = "the host does not make this call"
                raise _Ends(Outcome.DECLINED, f"{json_string(tool.name)}: {reason}", reason)
            known = doubts
            # The user may have cancelled, or another chain may have called the tool.
            await anyio.lowlevel.checkpoint()

    async def _ask(self, proposal: Proposal, *, in_doubt: bool) -> None:
        """Ask the host's policy. Raises `_Ends` unless it says yes."""
        name, policy = json_string(proposal.tool.name), self.follower.consent
        suggested = not in_doubt and proposal.rule is None
        detail, reason = f"the host did not consent to the call of {name}", "the host did not agree"
        nobody = "nobody could be asked to allow it"
        if in_doubt:
            reason = "an earlier call may have taken effect, and nobody agreed to repeat it"
            nobody = reason
            detail = f"an earlier call of {name} may have taken effect; nobody agreed to repeat it"
        if policy is None:
            detail = f"{detail}; no consent policy was given: pass consent="
            raise _Ends(Outcome.DECLINED, detail, nobody, suggested=suggested)
        ask = policy.allows_again if in_doubt else policy.allows
        try:
            answer = await _answer(ask(proposal))
        except NobodyToAsk:
            detail = f"{detail}; {nobody}"
            raise _Ends(Outcome.DECLINED, detail, nobody, suggested=suggested) from None
        if answer is not True:
            if answer is not False:
                what = f"{type(policy).__name__}.{ask.__name__} returned {type(answer).__name__}"
                logger.error("%s: only True is a yes, so the call is not made", what)
            raise _Ends(Outcome.DECLINED, detail, reason)

    @property
    def _trusts_hints(self) -> bool:
        consent = self.follower.consent
        return consent is not None and consent.trusts_hints

    def _pending(self, **changes: Any) -> None:
        if self.pending is not None:
            self.pending = replace(self.pending, **changes)

    def failed(self, error: Exception) -> ChainResult:
        """Return the result of a chain in which `error` was raised."""
        if isinstance(error, CallRefused) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        if isinstance(error, TimeoutError):
            reason = "the time allowed for it ran out"
        else:
            # The message can come from the server. In quotes it does not look like our text.
            reason = json_string(str(error) or type(error).__name__)
        if self.pending is not None and not self.pending.listed:
            reason = f"the server's tool list could not be read: {reason}"
        tool = json_string(self.pending.tool if self.pending else self.first.tool)
        what = f"the call of {tool} (call {len(self.steps) + 1})"
        if not self.calling:
            what = f"the check before the call of {tool}" if self.pending else "the chain"
        return self.ended(Outcome.FAILED, f"{what} failed: {reason}", reason, error)

    def cancelled(self) -> ChainResult:
        """Return the result of a chain whose task was cancelled."""
        when = f"after call {len(self.steps)}"
        if self.calling:
            tool = self.pending.tool if self.pending else self.first.tool
            when = f"during the call of {json_string(tool)}"
        return self.ended(Outcome.CANCELLED, f"its task was cancelled {when}")

    def ended(
        self,
        outcome: Outcome,
        detail: str,
        reason: str = "",
        error: Exception | None = None,
        *,
        suggested: bool = False,
    ) -> ChainResult:
        """Return the result of the chain, which ends now."""
        if self.completed:
            outcome, detail = Outcome.COMPLETED, "the last result names no further tool"
        reason = reason or detail
        if self.pending is not None and not self.pending.listed:
            reason = f"{reason}; {UNNAMED}"
        self._pending(detail=reason, suggested=suggested)
        steps, followed = tuple(self.steps), self.follower.follows()
        return ChainResult(
            self.chain_id, outcome, detail, steps, self.pending, error, followed=followed
        )


async def _answer(given: object) -> object:
    """Return what a policy answers. Its methods may be plain or async functions."""
    return await given if inspect.isawaitable(given) else given


async def tell(listener: Callable[[Any], Any] | None, news: Any) -> None:
    """Call a listener of a chain, if there is one. It may be a plain or an async function."""
    try:
        returned = None if listener is None else listener(news)
        if inspect.isawaitable(returned):
            await returned
    except Exception:
        logger.exception("a listener of a chain raised an exception")
