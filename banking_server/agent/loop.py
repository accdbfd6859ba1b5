"""The recursive agent: it goes on for as long as the model's replies ask for tool calls.

    agent = Agent(endpoint, await Toolbox.gather({"bank": client}))
    run = await agent.ask("What do I have in my savings account?")
    print(run.answer or run.report())

The conversation grows with each request. Each call that the model asks for is checked, and then
made through the chaining client, so that a server's directives are followed without asking the
model. The transcript says who decided on each call.
"""

import asyncio
import inspect
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel

from banking_server.agent.audience import chain_for_model, result_for_model, visible
from banking_server.agent.endpoint import Completion, Endpoint, Message, ModelUnavailable, OnText
from banking_server.agent.history import History
from banking_server.agent.policy import AllowReadOnly, CallPolicy, consents
from banking_server.agent.prompt import (
    ANSWER,
    NOBODY_TO_ASK,
    answer_now,
    instructions,
    reminder,
    reply_schema,
)
from banking_server.agent.reply import (
    CallRequest,
    ForUser,
    Meaning,
    Unreadable,
    certain_text,
    read_arguments,
    read_reply,
    without_thoughts,
)
from banking_server.agent.toolbox import OfferedTool, Toolbox, legal_name
from banking_server.agent.transcript import (
    Called,
    Calling,
    ChainStopped,
    Corrected,
    Declined,
    Entry,
    ModelReplied,
    OnEntry,
    Run,
    RunOutcome,
    Said,
    what_happened,
)
from banking_server.chaining import (
    DEFAULT_CALL_TIMEOUT,
    ChainStop,
    Outcome,
    Proposal,
    Step,
    call_tool_with_chaining,
)
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.doubt import calls_in_doubt
from banking_server.chaining.values import canonical
from banking_server.host.names import Names, stem
from banking_server.text import one_line

LAST: Final = 1_000
"""Characters of the last result that the user is told where the model gives no answer."""

IDS_TOLD: Final = 20
"""Ids that a model which invented one is told."""

_LIKE_AN_ID: Final = re.compile(r"[\w-]*\d[\w-]*")
"""What can be an id of the user's words: they say `savings`, and mean no id."""

_CODE: Final = re.compile(r"(?=\S*\d)\S+")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")

_MONTH: Final = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"

_SPEAKS_OF_TIME: Final = re.compile(
    r"\b(?:today|tomorrow|tonight|next \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day|in an? \w+"
    rf"|in \d+ \w+|\d+(?:st|nd|rd|th)|\d+[./-]\d+[./-]|{_MONTH} \d+|\d+ {_MONTH})\b",
    re.IGNORECASE,
)
"""Words by which a user can mean a day, in English; in other languages the model is asked back."""


@dataclass(frozen=True)
class Bounds:
    """How far one request may go."""

    turns: int = 12
    """Replies of the model at most."""
    seconds: float = 600
    """Seconds that it may take, questions to the user included."""
    corrections: int = 3
    """How often in a row the model may put right a call that could not be made."""
    history: int = 24_000
    """Characters of the conversation that go with a request beside what the model is told at the
    start, about four to a token. The newest message is always whole."""


CallKey = tuple[str, str]


@dataclass(eq=False)
class Agent:
    """A model with tools, and the conversation with it."""

    endpoint: Endpoint
    """The model."""
    toolbox: Toolbox
    """The tools that it may call, and that a directive may."""
    _: KW_ONLY
    bounds: Bounds = Bounds()
    """How far one request may go."""
    consent: CallPolicy | None = None
    """Asked before each call, whether the model or a directive asks for it, unless a server that
    the host trusts says that the tool only reads. Without it only such tools are called, and the
    model is told that nobody can be asked."""
    system_prompt: str = ""
    """What the model is told first, beside what the tools need it to know."""
    follow_unadvertised: bool = False
    """Follow directives of a server that did not advertise the extension."""
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT
    """Seconds that each call may take, as `call_tool_with_chaining` has it."""
    on_call: Callable[[OfferedTool, dict[str, Any]], None] | None = None
    """Told of each call of the model's that can be made, before consent is asked for."""
    on_proposal: Callable[[Proposal], None] | None = None
    """The same for each call that a directive asks for."""
    on_entry: OnEntry | None = None
    """Told of each entry of the transcript as it happens."""
    on_text: OnText | None = None
    """Told what the model says to the user, piece by piece; with it, replies are streamed."""

    def __post_init__(self) -> None:
        self._native = self.endpoint.settings.tools == "native"
        tools = self.toolbox.tools
        self._schema = None if self._native or not tools else reply_schema(tools)
        self._policy = self.consent or AllowReadOnly()
        self._nobody = isinstance(self._policy, AllowReadOnly)
        self._history = History(self.bounds.history)
        self._under_way: _Work | None = None
        self._names = Names()
        """The ids that servers have named where the model could read them, or the user has."""
        for server, words in self.toolbox.instructions.items():
            self._names.hear(server, words)
        for tool in tools:
            self._names.hear(tool.server, tool.in_words())

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, without the system message and what is told there in short."""
        return self._history.messages

    async def ask(self, request: str) -> Run:
        """Work on a request until the model answers, a bound is reached, or `stop` is called.

        However it ends, even cancelled from outside, the conversation can go on: it says what had
        happened by then. Requests to one agent are made one after the other.
        """
        began = time.monotonic()
        work = self._under_way = _Work(request)
        self._history.begin(request)
        for server in {tool.server for tool in self.toolbox.tools}:
            self._names.hear(server, *_LIKE_AN_ID.findall(request))
        timer = asyncio.get_running_loop().call_later(
            self.bounds.seconds, work.halt, RunOutcome.TIME_LIMIT
        )
        outcome, detail, answer = RunOutcome.STOPPED, "This was stopped.", None
        try:
            with work.scope:
                outcome, detail, answer = await self._work(work)
            if work.scope.cancelled_caught and work.halted is RunOutcome.TIME_LIMIT:
                outcome = RunOutcome.TIME_LIMIT
                detail = f"The {self.bounds.seconds:g} seconds for this request are over."
        except ModelUnavailable as error:
            outcome, detail = RunOutcome.MODEL_UNAVAILABLE, str(error)
        finally:
            timer.cancel()
            self._under_way = None
            if answer is None:
                self._close(f"[No answer: {outcome}. {what_happened(work.transcript)}]")
            self._history.end(work.transcript)
        transcript = tuple(work.transcript)
        return Run(outcome, detail, answer, transcript, time.monotonic() - began)

    def stop(self) -> None:
        """Stop the request that is under way, if there is one; its `ask` returns.

        A chain under way ends as `cancelled`, and the model is told what it had come to. To be
        called in the event loop's thread.
        """
        if self._under_way is not None:
            self._under_way.halt(RunOutcome.STOPPED)

    async def _work(self, work: "_Work") -> tuple[RunOutcome, str, str | None]:
        corrections = 0
        for _ in range(self.bounds.turns):
            streamed = _StreamedText(self.on_text)
            completion = await self._complete(work, streamed)
            if completion.calls:
                fit = await self._make_native(work, completion, streamed)
            else:
                reading = self._read(completion)
                if isinstance(reading, ForUser):
                    problem = self._answer_problem(work, reading.text)
                    if problem is None:
                        return _answered(completion, reading, streamed)
                    streamed.finish(reading.text)
                    reading = Unreadable(problem)
                elif isinstance(reading, Unreadable) and reading.repeats:
                    work.repeated = True
                words, fit = await self._make(work, reading, streamed)
                self.messages.append({"role": "user", "content": words})
                if fit:
                    # A mistake that was put right is an example to nobody.
                    self._history.forget(work.mistakes)
                    work.mistakes = []
                else:
                    work.mistakes += self.messages[-2:]
                await work.go_on()
            if work.repeated:
                return await self._answer_now(work)
            corrections = 0 if fit else corrections + 1
            if corrections > self.bounds.corrections:
                detail = f"The model's last {corrections} replies in a row could not be used."
                return RunOutcome.CORRECTION_LIMIT, detail, None
        detail = f"The model has replied {self.bounds.turns} times."
        return RunOutcome.TURN_LIMIT, detail, None

    async def _answer_now(self, work: "_Work") -> tuple[RunOutcome, str, str | None]:
        """Ask the model for an answer, once and without tools: it has begun to repeat itself."""
        if not self._native:
            # The repetition tells it nothing, and would stand between it and what it asked for.
            del self.messages[-2:]
        streamed = _StreamedText(self.on_text)
        completion = await self._complete(work, streamed, answer=True)
        reading = self._read(completion)
        answers = isinstance(reading, ForUser) and reading.text.strip() != work.request.strip()
        if isinstance(reading, ForUser) and answers and not completion.calls:
            return _answered(completion, reading, streamed)
        detail = "The model repeated itself, and gave no answer."
        for last in [entry for entry in work.transcript if isinstance(entry, Called)][-1:]:
            words = result_for_model(last.step.tool, last.step.without_words())
            detail += f" What it had last: {one_line(words, LAST)}"
        return RunOutcome.CORRECTION_LIMIT, detail, None

    # --- the model

    async def _complete(
        self, work: "_Work", streamed: "_StreamedText", *, answer: bool = False
    ) -> Completion:
        """Ask the model for its next reply; if `answer` is set, for one that makes no call."""
        self._history.fit()
        system = instructions(
            self.toolbox,
            "native" if self._native else "prompt",
            self.system_prompt,
            self._history.earlier(),
            nobody=self._nobody,
        )
        messages = [{"role": "system", "content": system}, *self.messages]
        # What is told below the last message is not kept. It is no message of its own, since some
        # models' templates refuse two messages of the user's in a row.
        below = ""
        if answer:
            below = f"\n\n{answer_now(work.request)}"
        elif not self._native and work.transcript:
            below = reminder(work.request, [*work.left])
        if below and (messages[-1]["role"] == "user" or not answer):
            messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}{below}"}
        elif below:
            messages.append({"role": "user", "content": below.strip()})
        completion = await self.endpoint.complete(
            messages,
            functions=self.toolbox.functions() if self._native and not answer else (),
            schema=ANSWER if answer and self._schema else self._schema,
            on_text=streamed.show if self.on_text is not None else None,
        )
        entry = ModelReplied(completion.text, completion.usage, completion.seconds)
        await self._note(work, entry)
        return completion

    def _read(self, completion: Completion) -> Meaning:
        """Read a reply, and keep it, without what the model thought aloud."""
        reading = read_reply(completion.text, cut_off=completion.cut_off)
        text = completion.text
        if "think>" in text.lower():
            text = reading.text if isinstance(reading, ForUser) else without_thoughts(text)
        self.messages.append({"role": "assistant", "content": text or "(nothing)"})
        return reading

    async def _note(self, work: "_Work", entry: Entry) -> None:
        work.transcript.append(entry)
        if self.on_entry is not None:
            told = self.on_entry(entry)
            if inspect.isawaitable(told):
                await told

    # --- its calls

    async def _make_native(
        self, work: "_Work", completion: Completion, streamed: "_StreamedText"
    ) -> bool:
        """Make the calls of a reply in the endpoint's own form; return whether all were fit."""
        readings = [read_arguments(call.arguments) for call in completion.calls]
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                # Endpoints reject a history with calls that they would not have accepted.
                "function": {
                    "name": legal_name(call.name),
                    "arguments": "{}" if isinstance(read, Unreadable) else call.arguments,
                },
            }
            for call, read in zip(completion.calls, readings, strict=True)
        ]
        self.messages.append(
            {"role": "assistant", "content": completion.text or None, "tool_calls": calls}
        )
        fit = True
        said = completion.text.strip()
        for call, read in zip(completion.calls, readings, strict=True):
            asked = read if isinstance(read, Unreadable) else CallRequest((call.name,), read, said)
            words, good = await self._make(work, asked, streamed)
            said = ""
            self.messages.append({"role": "tool", "tool_call_id": call.call_id, "content": words})
            await work.go_on()
            fit = fit and good
        return fit

    async def _make(
        self, work: "_Work", request: CallRequest | Unreadable, streamed: "_StreamedText"
    ) -> tuple[str, bool]:
        """Make a call if it can be made; return what to tell the model, and whether it could."""
        if isinstance(request, Unreadable):
            return await self._correct(work, request.problem)
        tool, arguments = self.toolbox.find(*request.names), request.arguments
        if tool is None:
            names = ", ".join(offered.name for offered in self.toolbox.tools) or "none"
            return await self._correct(
                work, f"there is no tool {request.names[0][:80]!r}; the tools are: {names}"
            )
        # Small models fill in every argument of a schema, and mean nothing by an empty text.
        required = tool.tool.input_schema.get("required", [])
        arguments = {name: one for name, one in arguments.items() if one != "" or name in required}
        problem = argument_problem(tool.tool.input_schema, arguments)
        if problem is not None:
            return await self._correct(work, f"{tool.name}: {problem}")
        key = _key(tool, arguments)
        if key in work.read or key in work.changed:
            work.repeated = True
            return await self._correct(
                work, f"{tool.name} was called with these arguments before; its result stands above"
            )
        if key not in work.refused and (invented := self._invented(work, tool, arguments)):
            work.left[tool.name] = tool
            return await self._correct(work, invented)
        if request.said:
            streamed.finish(request.said)
            await self._note(work, Said(request.said))
        if self.on_call is not None:
            self.on_call(tool, arguments)
        if key in work.refused:
            work.repeated = True
            return await self._correct(
                work,
                f"the user has refused this call of {tool.name}, and is not asked again; do not "
                "ask for it again in this request",
            )
        work.left.pop(tool.name, None)
        in_doubt = (tool.tool.name, key[1]) in calls_in_doubt(tool.client)
        again = in_doubt and not tool.repeatable
        if not await consents(self._policy, tool, arguments, again=again):
            work.refused.add(key)
            await self._note(work, Declined(tool, arguments, self._nobody))
            if self._nobody:
                words = f"{tool.name} was not called. {NOBODY_TO_ASK} Tell the user so."
            else:
                words = f"The user declined the call of {tool.name}: do not make it again."
            return words, True
        return await self._call(work, tool, arguments), True

    def _invented(self, work: "_Work", tool: OfferedTool, arguments: dict[str, Any]) -> str | None:
        """Say what in a call neither the server nor the user has named; each is told once."""
        schema, said = tool.tool.input_schema, dict[str, None]()
        unnamed = self._names.unnamed(tool.server, arguments, schema)
        for key, id_ in [one for one in unnamed if one not in work.told]:
            said[f"{key} {json.dumps(id_)} is no id that the server or the user has named."] = None
            lists = self.toolbox.lists(tool.server, stem(key))
            returned = self._names.returned(tool.server, key)[:IDS_TOLD]
            if lists is None:
                returned = returned or self._names.returned(tool.server, "")[:IDS_TOLD]
            if returned:
                ids = ", ".join(returned)
                said[f"The ids that the server has returned so far: {ids}."] = None
            elif lists not in (None, tool):
                said[f"Call {lists.name} first: it lists them."] = None
        named = [name for name, _ in unnamed]
        others = [(n, v) for n, v in self._unasked(work, tool, arguments) if n not in named]
        for name, _ in [one for one in others if one not in work.told]:
            kept = json.dumps({key: one for key, one in arguments.items() if key != name})
            said[f"The user named no {name}, and it is optional: leave it out, {kept}."] = None
        work.told.update(unnamed or others)
        return " ".join(said).rstrip(".") or None

    def _unasked(
        self, work: "_Work", tool: OfferedTool, arguments: dict[str, Any]
    ) -> list[tuple[str, str]]:
        """Return the dates, codes and numbers in text that a call can do without and nobody named.

        The value tells: most servers say in words, and not in the schema, that a text is a date.
        """
        return [
            (name, value)
            for name, value in arguments.items()
            if name not in tool.tool.input_schema.get("required", [])
            and isinstance(value, str)
            and _CODE.fullmatch(value)
            and value not in work.request
            and not self._names.knows(tool.server, value)
            and not (_DATE.match(value) and _SPEAKS_OF_TIME.search(work.request))
        ]

    def _answer_problem(self, work: "_Work", answer: str) -> str | None:
        """Say, once, what is wrong with an answer: it is the request, or a call was never made."""
        if answer.strip() == work.request.strip():
            work.repeated = True
            return "that repeats the request; say what was done, and what was not"
        left, work.left = work.left, {}
        if not left or answer.rstrip().endswith("?"):
            return None
        ids = [one for tool in left.values() for one in self._names.returned(tool.server, "")]
        known = f" The ids are: {', '.join(dict.fromkeys(ids[:IDS_TOLD]))}." if ids else ""
        return (
            f"{', '.join(left)} was not called yet.{known} If the user asked for it, call it now. "
            "Otherwise say what was done, and what was not"
        )

    async def _correct(self, work: "_Work", problem: str) -> tuple[str, bool]:
        await self._note(work, Corrected(problem))
        words = (
            f"No call was made: {problem}. Reply with the call put right, or with your answer to "
            "the user in plain text."
        )
        return words, False

    async def _call(self, work: "_Work", tool: OfferedTool, arguments: dict[str, Any]) -> str:
        """Make a call, follow the chain that it begins, and return it in words for the model."""
        await self._note(work, Calling(tool, arguments))
        same_server = {
            offered.tool.name: offered
            for offered in self.toolbox.tools
            if offered.client is tool.client
        }
        following = _Following(self, work, same_server)
        work.chain = ChainStop()
        chain = await call_tool_with_chaining(
            tool.client,
            tool.tool.name,
            arguments,
            consent=following,
            call_timeout=self.call_timeout,
            on_step=following.told,
            on_proposal=self.on_proposal,
            follow_unadvertised=self.follow_unadvertised,
            stop=work.chain,
        )
        work.chain = None
        if chain.error is not None and not chain.steps and not tool.repeatable:
            # What may have taken effect is not made twice, unless that does no harm.
            work.changed.add(_key(tool, arguments))
        if chain.outcome is not Outcome.COMPLETED:
            await self._note(work, ChainStopped(chain.outcome, chain.detail))
        names = {own: offered.name for own, offered in same_server.items()}
        return chain_for_model(chain, names)

    def _close(self, words: str) -> None:
        """End a run that has no answer, so that the conversation can go on from here."""
        answered = {message.get("tool_call_id") for message in self.messages}
        asked = [call for message in self.messages for call in message.get("tool_calls", ())]
        for call in asked:
            if call["id"] not in answered:
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": words})
        self.messages.append({"role": "assistant", "content": words})


@dataclass
class _Work:
    """One request under way."""

    request: str
    transcript: list[Entry] = field(default_factory=list[Entry])
    changed: set[CallKey] = field(default_factory=set[CallKey])
    """The calls that are not made again in this request: paying twice is not what was asked."""
    read: set[CallKey] = field(default_factory=set[CallKey])
    """The calls that are in vain as long as nothing was changed, since they only read."""
    mistakes: list[Message] = field(default_factory=list[Message])
    """The replies that could not be used, and what the model was told of each."""
    repeated: bool = False
    """The model has asked again for a call that brings nothing new."""
    refused: set[CallKey] = field(default_factory=set[CallKey])
    """The calls that the host did not consent to, whoever asked: it is not asked again."""
    told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The arguments that the model was told it has invented, each with its name."""
    left: dict[str, OfferedTool] = field(default_factory=dict[str, OfferedTool])
    """The tools whose calls were sent back for that, and that were not called since."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    chain: ChainStop | None = None
    """Stops the chain that is under way, if there is one."""
    halted: RunOutcome | None = None
    """Why no more is to be done."""

    def halt(self, why: RunOutcome) -> None:
        """Let no more be done; a chain that is under way first says what it has come to."""
        self.halted = self.halted or why
        if self.chain is None:
            self.scope.cancel()
        else:
            self.chain.stop()

    async def go_on(self) -> None:
        """Go no further here if no more is to be done."""
        if self.halted is not None:
            self.scope.cancel()
        await anyio.lowlevel.checkpoint()


@dataclass
class _Following:
    """A chain under way: the host's consent to its follow-up calls, and notes of what is done."""

    agent: Agent
    work: _Work
    offered: Mapping[str, OfferedTool]
    """What the model is offered of this server's tools, by the server's names."""

    async def allows(self, proposal: Proposal, *, again: bool = False) -> bool:
        """Return whether a follow-up call is made; `again` says that its effect is unknown."""
        offered = self.offered.get(proposal.tool.name)
        if offered is None:
            return False  # What the model may not call, a directive may not either (TC-C-42).
        # As the server lists it now: what it says of the tool may have changed.
        tool = replace(offered, tool=proposal.tool)
        key = _key(tool, proposal.arguments)
        policy = self.agent._policy
        if key in self.work.refused or not await consents(
            policy, tool, proposal.arguments, again=again
        ):
            self.work.refused.add(key)
            return False
        made = Calling(offered, proposal.arguments, by="directive")
        await self.agent._note(self.work, made)
        return True

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether a follow-up call is made once more, though its effect is unknown."""
        return await self.allows(proposal, again=True)

    async def told(self, step: Step) -> None:
        """Take note of a result."""
        tool = self.offered[step.tool]
        key = _key(tool, step.arguments)
        if tool.says_read_only or step.result.is_error:
            self.work.read.add(key)
        else:
            # What was read before may be otherwise now, and what failed may succeed.
            self.work.read.clear()
            self.work.changed.add(key)
        self.agent._names.learn(tool.server, visible(step.without_words()))
        by: Literal["model", "directive"] = "model" if step.level == 1 else "directive"
        await self.agent._note(self.work, Called(by, tool.server, step))


def _key(tool: OfferedTool, arguments: dict[str, Any]) -> CallKey:
    """Return what two equal calls have in common."""
    return tool.name, canonical(arguments)


def _answered(
    completion: Completion, reading: ForUser, streamed: "_StreamedText"
) -> tuple[RunOutcome, str, str]:
    streamed.finish(reading.text)
    cut_off = ", and was cut off at its length limit" if completion.cut_off else ""
    return RunOutcome.ANSWERED, f"The model answered{cut_off}.", reading.text


class _StreamedText:
    """Passes on what the model says to the user, but nothing that may turn out to be a call."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._came = ""
        self._shown = ""

    def show(self, piece: str) -> None:
        """Take the next piece of a reply."""
        self._came += piece
        self._pass_on(certain_text(self._came))

    def finish(self, text: str) -> None:
        """Pass on the rest of what turned out to be the text for the user.

        All of it, on a line of its own, if what was shown turned out to be something else.
        """
        if not text.startswith(self._shown):
            text = f"{self._shown}\n{text}"
        self._pass_on(text)

    def _pass_on(self, text: str) -> None:
        if self._on_text is not None and text != self._shown and text.startswith(self._shown):
            self._on_text(text[len(self._shown) :])
            self._shown = text
