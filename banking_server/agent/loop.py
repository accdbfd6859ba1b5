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
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel

from banking_server.agent.audience import chain_for_model, may_be_repeated, result_for_model
from banking_server.agent.constrained import ANSWER, fits, reply_schema
from banking_server.agent.endpoint import (
    Completion,
    Endpoint,
    Message,
    ModelUnavailable,
    OnText,
)
from banking_server.agent.history import Account, Earlier, account, newest, shorten, size
from banking_server.agent.policy import (
    AllowReadOnly,
    CallPolicy,
    call_key,
    consents,
    exact_key,
    may_have_been_made,
)
from banking_server.agent.prompt import answer_now, instructions, reminder
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
from banking_server.text import one_line

LAST: Final = 1_000
"""Characters of the last result that the user is told where the model gives no answer."""

CALLS_IN_A_REPLY: Final = 10
"""Calls of one reply that are made at most; some endpoints let a model ask for many at once."""


@dataclass(frozen=True)
class Bounds:
    """How far one request may go."""

    turns: int = 12
    """Replies of the model at most."""
    seconds: float = 600
    """Seconds that it may take, questions to the user included."""
    tokens: int = 100_000
    """Tokens, prompts and replies together, after which the model is asked no more."""
    corrections: int = 3
    """How often in a row the model may put right a call that could not be made."""
    history: int = 24_000
    """Characters of the conversation that go with a request beside what the model is told at the
    start, about four to a token. The newest words of the user and the newest results are always
    whole; what is older is told in short, and half of this is there for it."""


OnCall = Callable[[OfferedTool, dict[str, Any]], None]
OnProposal = Callable[[Proposal], None]


class Agent:
    """A model with tools, and the conversation with it.

    Args:
        endpoint: The model.
        toolbox: The tools it may call.
        bounds: How far one request may go.
        consent: Asked before each call, whether the model or a directive asks for it, unless the
            tool is annotated as read-only by a server that the host trusts; by default
            `AllowReadOnly`. It is not asked about a tool that is not in the toolbox: the model
            could not call it, so a directive cannot either. Its `allows_again` is asked before a
            call whose effect is unknown is made once more.
        system_prompt: What the model is told first, beside what the tools need it to know.
        follow_unadvertised: Follow directives of a server that did not advertise the extension.
        call_timeout: Seconds that each call may take, as `call_tool_with_chaining` has it.
        on_call: Told of each call that the model asks for and that can be made, before consent is
            asked for.
        on_proposal: The same for each call that a directive asks for.
        on_entry: Told of each entry of the transcript as it happens.
        on_text: Told what the model says to the user, piece by piece. If it is given, the model's
            replies are streamed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        toolbox: Toolbox,
        *,
        bounds: Bounds = Bounds(),
        consent: CallPolicy | None = None,
        system_prompt: str = "",
        follow_unadvertised: bool = False,
        call_timeout: float | None = DEFAULT_CALL_TIMEOUT,
        on_call: OnCall | None = None,
        on_proposal: OnProposal | None = None,
        on_entry: OnEntry | None = None,
        on_text: OnText | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._toolbox = toolbox
        self._bounds = bounds
        self._consent = consent or AllowReadOnly()
        self._follow_unadvertised = follow_unadvertised
        self._call_timeout = call_timeout
        self._on_call = on_call
        self._on_proposal = on_proposal
        self._on_entry = on_entry
        self._on_text = on_text
        self._system_prompt = system_prompt
        self._schema = reply_schema(toolbox.tools)
        self._under_way: _Work | None = None
        self.messages: list[Message] = []
        """The conversation so far, without the system message and what is told there in short."""
        self._past: list[tuple[int, Account]] = []
        """The requests in `messages`: how many messages each has, and the account of it."""
        self._earlier = Earlier()
        """The requests that are no longer in `messages`."""

    async def ask(self, request: str) -> Run:
        """Work on a request until the model answers, a bound is reached, or `stop` is called.

        However it ends, even cancelled from outside, the conversation can go on: it says what had
        happened by then. Requests to one agent are made one after the other.
        """
        began = time.monotonic()
        asked = {"role": "user", "content": request}
        work = self._under_way = _Work(asked, len(self.messages))
        self.messages.append(asked)
        timer = asyncio.get_running_loop().call_later(
            self._bounds.seconds, work.halt, RunOutcome.TIME_LIMIT
        )
        outcome, detail, answer = RunOutcome.STOPPED, "This was stopped.", None
        try:
            with work.scope:
                outcome, detail, answer = await self._work(work)
            if work.scope.cancelled_caught and work.halted is RunOutcome.TIME_LIMIT:
                outcome = RunOutcome.TIME_LIMIT
                detail = f"The {self._bounds.seconds:g} seconds for this request are over."
        except ModelUnavailable as error:
            outcome, detail = RunOutcome.MODEL_UNAVAILABLE, str(error)
        finally:
            timer.cancel()
            self._under_way = None
            if answer is None:
                self._close(f"[No answer: {outcome}. {what_happened(work.transcript)}]")
            ended = answer or str(self.messages[-1]["content"])
            self._past.append(
                (len(self.messages) - work.begins, account(request, work.transcript, ended))
            )
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
        bounds = self._bounds
        form = await self._find_form(work)
        for _ in range(bounds.turns):
            if work.tokens >= bounds.tokens:
                return (
                    RunOutcome.TOKEN_LIMIT,
                    f"This request has used {work.tokens} tokens, and may use {bounds.tokens}.",
                    None,
                )
            streamed = self._stream(form)
            self._trim(work)
            completion = await self._complete(work, form, streamed)
            if completion.calls:
                fit = await self._make_native(work, completion, streamed)
            else:
                reading = read_reply(completion.text, cut_off=completion.cut_off)
                self.messages.append(_kept(completion.text, reading))
                if isinstance(reading, ForUser):
                    return self._answered(completion, reading, streamed)
                words, fit = await self._make(work, reading, streamed)
                self.messages.append({"role": "user", "content": words})
                await work.go_on()
            if work.repeated:
                return await self._answer_now(work, form)
            work.corrections = 0 if fit else work.corrections + 1
            if work.corrections > bounds.corrections:
                return (
                    RunOutcome.CORRECTION_LIMIT,
                    f"The model asked {work.corrections} times in a row for a call that cannot be "
                    "made.",
                    None,
                )
        return RunOutcome.TURN_LIMIT, f"The model has replied {bounds.turns} times.", None

    def _answered(
        self, completion: Completion, reading: ForUser, streamed: "_StreamedText"
    ) -> tuple[RunOutcome, str, str]:
        streamed.finish(reading.text)
        detail = "The model answered."
        if completion.cut_off:
            detail = "The model answered, and was cut off at its length limit."
        return RunOutcome.ANSWERED, detail, reading.text

    async def _answer_now(
        self, work: "_Work", form: Literal["native", "prompt"]
    ) -> tuple[RunOutcome, str, str | None]:
        """Ask the model for an answer, once and without tools: it has begun to repeat itself."""
        if form == "prompt":
            # The repetition tells it nothing, and would stand between it and what it asked for.
            del self.messages[-2:]
        streamed = self._stream(form)
        completion = await self._complete(work, form, streamed, answer=True)
        reading = read_reply(completion.text, cut_off=completion.cut_off)
        if completion.calls or not isinstance(reading, ForUser):
            detail = "The model asked again for a call that was made before, and gave no answer."
            last = next((e for e in reversed(work.transcript) if isinstance(e, Called)), None)
            if last is not None:
                words = result_for_model(last.step.tool, last.step.without_words())
                detail += f" What it had last: {one_line(words, LAST)}"
            return RunOutcome.CORRECTION_LIMIT, detail, None
        self.messages.append(_kept(completion.text, reading))
        return self._answered(completion, reading, streamed)

    # --- the model

    async def _find_form(self, work: "_Work") -> Literal["native", "prompt"]:
        """Return how the model is given tools; find out what the endpoint can, the first time."""
        endpoint = self._endpoint
        if not self._toolbox.tools:
            return "prompt"
        if endpoint.native is None:
            probed = await endpoint.find_native()
            if probed is not None:
                form: Literal["native", "prompt"] = "native" if endpoint.native else "prompt"
                await self._note_reply(work, "probe", form, probed)
        if endpoint.native:
            return "native"
        if endpoint.format is None:
            for completion in await endpoint.find_format(self._schema, fits(self._schema)):
                await self._note_reply(work, "probe", "prompt", completion)
        return "prompt"

    async def _complete(
        self,
        work: "_Work",
        form: Literal["native", "prompt"],
        streamed: "_StreamedText",
        *,
        answer: bool = False,
    ) -> Completion:
        """Ask the model for its next reply; if `answer` is set, for one that makes no call."""
        messages = [*self.messages]
        if answer:
            words = answer_now(work.asked["content"])
            if messages[-1]["role"] == "user":
                # Some models' templates refuse two messages of the user's in a row.
                words = f"{messages.pop()['content']}\n\n{words}"
            messages.append({"role": "user", "content": words})
        earlier = "\n\n".join(
            words for words in (self._earlier.in_words(), work.so_far.in_words()) if words
        )
        words = instructions(self._toolbox, form, self._system_prompt, earlier)
        system = {"role": "system", "content": words}
        if form == "prompt" and messages[-1] is not work.asked and not answer:
            # Not kept: it is for the end of the conversation alone.
            last = messages[-1]
            words = f"{last['content']}{reminder(work.asked['content'])}"
            messages = [*messages[:-1], {**last, "content": words}]
        completion = await self._endpoint.complete(
            [system, *messages],
            functions=self._toolbox.functions() if form == "native" and not answer else (),
            schema=self._held_to(form, answer),
            on_text=streamed.show if self._on_text is not None else None,
        )
        await self._note_reply(work, "turn", form, completion)
        return completion

    def _held_to(self, form: Literal["native", "prompt"], answer: bool) -> Mapping[str, Any] | None:
        if form == "native" or not self._toolbox.tools:
            return None
        return ANSWER if answer else self._schema

    def _stream(self, form: Literal["native", "prompt"]) -> "_StreamedText":
        constrained = form == "prompt" and self._endpoint.format in ("json_schema", "json_object")
        return _StreamedText(self._on_text, constrained=constrained)

    async def _note_reply(
        self,
        work: "_Work",
        purpose: Literal["probe", "turn"],
        form: Literal["native", "prompt"],
        completion: Completion,
    ) -> None:
        work.tokens += completion.usage.total
        await self._note(
            work,
            ModelReplied(purpose, form, completion.text, completion.usage, completion.seconds),
        )

    async def _note(self, work: "_Work", entry: Entry) -> None:
        work.transcript.append(entry)
        if self._on_entry is not None:
            told = self._on_entry(entry)
            if inspect.isawaitable(told):
                await told

    # --- its calls

    async def _make_native(
        self, work: "_Work", completion: Completion, streamed: "_StreamedText"
    ) -> bool:
        """Make the calls of a reply in the endpoint's own form; return whether all were fit."""
        readings = [read_arguments(call.arguments) for call in completion.calls]
        self.messages.append(
            {
                "role": "assistant",
                "content": completion.text or None,
                # Endpoints reject a history with calls that they would not have accepted.
                "tool_calls": [
                    {
                        "id": call.call_id,
                        "type": "function",
                        "function": {
                            "name": legal_name(call.name),
                            "arguments": "{}" if isinstance(read, Unreadable) else call.arguments,
                        },
                    }
                    for call, read in zip(completion.calls, readings, strict=True)
                ],
            }
        )
        fit = True
        said = completion.text.strip()
        for number, (call, read) in enumerate(zip(completion.calls, readings, strict=True)):
            if number >= CALLS_IN_A_REPLY:
                words, good = f"Not made: at most {CALLS_IN_A_REPLY} calls in one reply.", False
            elif isinstance(read, Unreadable):
                words, good = await self._make(work, read, streamed)
            else:
                request = CallRequest((call.name,), read, said)
                words, good = await self._make(work, request, streamed)
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
        tool, arguments = self._toolbox.find(*request.names), request.arguments
        if tool is None:
            names = ", ".join(offered.name for offered in self._toolbox.tools) or "none"
            return await self._correct(
                work, f"there is no tool {request.names[0][:80]!r}; the tools are: {names}"
            )
        problem = argument_problem(tool.tool.input_schema, arguments)
        if problem is not None:
            return await self._correct(work, f"{tool.name}: {problem}")
        key = call_key(tool, arguments)
        if key in work.made or key in work.failed:
            work.repeated = True
            came = "its result stands above" if key in work.made else "failed as is said above"
            return await self._correct(
                work, f"{tool.name} was called with these arguments before, and {came}"
            )
        if request.said:
            streamed.finish(request.said)
            await self._note(work, Said(request.said))
        if self._on_call is not None:
            self._on_call(tool, arguments)
        if key in work.refused:
            work.repeated = True
            return await self._correct(
                work,
                f"the user has refused this call of {tool.name}, and is not asked again; do not "
                "ask for it again in this request",
            )
        again = may_have_been_made(tool, arguments)
        agreed = not again and exact_key(tool, arguments) in work.agreed
        if not (agreed or await consents(self._consent, tool, arguments, again=again)):
            work.refused.add(key)
            await self._note(work, Declined(tool, arguments))
            return f"The user declined the call of {tool.name}: do not make it again.", True
        return await self._call(work, tool, arguments), True

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
            for offered in self._toolbox.tools
            if offered.client is tool.client
        }
        following = _Following(self, work, same_server)
        stop = work.chain = ChainStop()
        try:
            chain = await call_tool_with_chaining(
                tool.client,
                tool.tool.name,
                arguments,
                consent=following,
                call_timeout=self._call_timeout,
                on_step=following.told,
                on_proposal=self._on_proposal,
                follow_unadvertised=self._follow_unadvertised,
                stop=stop,
                in_doubt=tool.in_doubt,
            )
        finally:
            work.chain = None
        if chain.error is not None and not chain.steps:
            # What may have taken effect is not made twice, unless that does no harm.
            if tool.repeatable:
                work.agreed.add(exact_key(tool, arguments))
            else:
                work.failed.add(call_key(tool, arguments))
        if chain.outcome is not Outcome.COMPLETED:
            await self._note(work, ChainStopped(chain.outcome, chain.detail))
        names = {own: offered.name for own, offered in same_server.items()}
        return chain_for_model(chain, names)

    def _trim(self, work: "_Work") -> None:
        """Hold the conversation to its bound, the oldest first."""
        if work.corrections > 1 and _same_corrections(self.messages[-4:]):
            # Once is enough.
            del self.messages[-4:-2]
        bound = self._bounds.history
        reminded = len(reminder(work.asked["content"]))
        # What is newest is kept whole, and what is older has half of the bound at least.
        own = reminded + size(newest(self.messages[work.begins :]))
        characters = max(bound, own + bound // 2) - reminded
        while self._past and size(self.messages) + len(self._earlier.in_words()) > characters:
            length, in_short = self._past.pop(0)
            del self.messages[:length]
            work.begins -= length
            self._earlier.add(in_short)
            self._earlier.hold(bound // 2)
        under_way = self.messages[work.begins :]
        left = characters - len(self._earlier.in_words())
        if shorten(under_way, left):
            work.so_far = Earlier("Done so far in this request, in short:")
            work.so_far.add_calls(work.transcript)
            work.so_far.hold(bound // 4)
            shorten(under_way, left - len(work.so_far.in_words()))
        self.messages[work.begins :] = under_way

    def _close(self, words: str) -> None:
        """End a run that has no answer, so that the conversation can go on from here."""
        answered = {message.get("tool_call_id") for message in self.messages}
        asked = [message for message in self.messages if message.get("tool_calls")][-1:]
        for message in asked:
            for call in message["tool_calls"]:
                if call["id"] not in answered:
                    self.messages.append(
                        {"role": "tool", "tool_call_id": call["id"], "content": words}
                    )
        self.messages.append({"role": "assistant", "content": words})


@dataclass
class _Work:
    """One request under way."""

    asked: Message
    """The user's words."""
    begins: int
    """The place of these words in the conversation."""
    transcript: list[Entry] = field(default_factory=list[Entry])
    tokens: int = 0
    corrections: int = 0
    made: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The calls that would bring nothing new. A model that does not know when to stop repeats one:
    paying twice is not what was asked, and reading twice is in vain as long as nothing changed."""
    read: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Those that changed nothing."""
    failed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The calls that failed for good: they would only fail again."""
    agreed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The calls that failed for now: made again, they need no second consent."""
    repeated: bool = False
    """The model has asked again for a call that brings nothing new."""
    refused: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The calls that the host did not consent to, whoever asked: it is not asked again."""
    so_far: Earlier = field(default_factory=Earlier)
    """What was done in turns that the conversation no longer has."""
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

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether a follow-up call is made."""
        return await self._agreed(proposal, again=False)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether a follow-up call is made once more, though its effect is unknown."""
        return await self._agreed(proposal, again=True)

    async def _agreed(self, proposal: Proposal, *, again: bool) -> bool:
        offered = self.offered.get(proposal.tool.name)
        if offered is None:
            return False  # What the model may not call, a directive may not either (TC-C-42).
        # As the server lists it now: what it says of the tool may have changed.
        tool = replace(offered, tool=proposal.tool)
        call = call_key(tool, proposal.arguments)
        if call not in self.work.refused and await consents(
            self.agent._consent, tool, proposal.arguments, again=again
        ):
            made = Calling(offered, proposal.arguments, by="directive")
            await self.agent._note(self.work, made)
            return True
        self.work.refused.add(call)
        return False

    async def told(self, step: Step) -> None:
        """Take note of a result."""
        tool = self.offered[step.tool]
        key = call_key(tool, step.arguments)
        if not step.result.is_error:
            if not tool.says_read_only:
                # What was read before may be otherwise now.
                self.work.made -= self.work.read
            else:
                self.work.read.add(key)
            self.work.made.add(key)
        elif may_be_repeated(step.result):
            self.work.agreed.add(exact_key(tool, step.arguments))
        else:
            self.work.failed.add(key)
        by: Literal["model", "directive"] = "model" if step.level == 1 else "directive"
        await self.agent._note(self.work, Called(by, tool.server, step))


def _same_corrections(messages: Sequence[Message]) -> bool:
    """Return whether these are two replies that were corrected in the same words."""
    reply, first, again, second = messages
    replies = reply["role"] == again["role"] == "assistant"
    return replies and bool(first["content"] == second["content"])


def _kept(text: str, reading: Meaning) -> Message:
    """Return a reply as it is kept: without what the model thought aloud."""
    if "<think" in text.lower() or "</think" in text.lower():
        text = reading.text if isinstance(reading, ForUser) else without_thoughts(text)
    return {"role": "assistant", "content": text or "(nothing)"}


class _StreamedText:
    """Passes on what the model says to the user, but nothing that may turn out to be a call."""

    def __init__(self, on_text: OnText | None, *, constrained: bool) -> None:
        self._on_text = on_text
        self._constrained = constrained
        self._came = ""
        self._shown = ""

    def show(self, piece: str) -> None:
        """Take the next piece of a reply."""
        self._came += piece
        self._pass_on(certain_text(self._came, constrained=self._constrained))

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
