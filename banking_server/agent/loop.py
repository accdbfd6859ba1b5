"""The recursive agent: it goes on for as long as the model's replies ask for tool calls.

    agent = Agent(endpoint, await Toolbox.gather({"bank": client}))
    run = await agent.ask("What do I have in my savings account?")
    print(run.answer or run.report())

The conversation grows with each request. Each call that the model asks for is checked, and then
made through the chaining client, so that a server's directives are followed without asking the
model. The transcript says who decided on each call.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, Literal

from banking_server.agent import prompt
from banking_server.agent.endpoint import (
    Completion,
    Endpoint,
    Message,
    ModelUnavailable,
    OnText,
)
from banking_server.agent.history import History
from banking_server.agent.policy import CallPolicy, consents
from banking_server.agent.reply import (
    CallRequest,
    ForUser,
    Meaning,
    Unreadable,
    certain_text,
    read_completion,
    without_thoughts,
)
from banking_server.agent.toolbox import OfferedTool, Toolbox, legal_name
from banking_server.agent.transcript import Called, Entry, NotCalled, Run, RunOutcome, Said
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

IDS_TOLD: Final = 20
"""Ids that a model which invented one is told."""

NO_RESULT: Final = "[No result.]"
"""What a call is answered with while it is made, and for good if it is broken off."""

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
    on_entry: Callable[[Entry], None] | None = None
    """Told of each entry of the transcript as it happens."""
    on_text: OnText | None = None
    """Told what the model says to the user, as far as it is there; with it, replies are streamed.
    The whole of it comes as an entry `Said`, or as the answer."""

    def __post_init__(self) -> None:
        self._native = self.endpoint.settings.tools == "native"
        tools = self.toolbox.tools
        self._schema = None if self._native or not tools else prompt.reply_schema(tools)
        self._functions = [tool.as_function() for tool in tools] if self._native else []
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
        run = work.run
        self._history.begin(request)
        for server in {tool.server for tool in self.toolbox.tools}:
            self._names.hear(server, *_LIKE_AN_ID.findall(request))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.bounds.seconds, work.halt, RunOutcome.TIME_LIMIT)
        try:
            run.outcome, run.detail, run.answer = await self._work(work)
        except _Stopped:
            if work.halted is RunOutcome.TIME_LIMIT:
                run.outcome = RunOutcome.TIME_LIMIT
                run.detail = f"The {self.bounds.seconds:g} seconds for this request are over."
        except ModelUnavailable as error:
            run.outcome, run.detail = RunOutcome.MODEL_UNAVAILABLE, str(error)
        finally:
            timer.cancel()
            self._under_way = None
            if run.answer is None:
                words = f"[No answer: {run.outcome}. {run.happened()}]"
                self.messages.append({"role": "assistant", "content": words})
            self._history.end(run.transcript, run.calling)
        run.seconds = time.monotonic() - began
        return run

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
            completion, asked = await self._complete(work)
            if isinstance(asked[0], ForUser):
                problem = self._answer_problem(work, asked[0].text)
                if problem is None:
                    return RunOutcome.ANSWERED, "The model answered.", asked[0].text
                asked = [Unreadable(problem)]
            elif isinstance(asked[0], Unreadable) and asked[0].repeats:
                work.repeated = True
            answers: list[Message] = [
                {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
                for call in completion.calls
            ] or [{"role": "user", "content": NO_RESULT}]
            reply = [self.messages[-1], *answers]
            self.messages.extend(answers)
            fit = False
            for meaning, answer in zip(asked, answers, strict=True):
                try:
                    answer["content"] = await self._make(work, meaning)
                    fit = True
                except _Unfit as problem:
                    told = NotCalled(f"No call was made: {problem}. The model has been told.")
                    self._note(work, told)
                    answer["content"] = (
                        f"No call was made: {problem}. Reply with the call put right, or with your "
                        "answer to the user in plain text."
                    )
                if work.halted:
                    break
            if fit:
                # A mistake that was put right is an example to nobody.
                self._history.forget(work.mistakes)
                work.mistakes = []
            else:
                work.mistakes += reply
            if work.halted:
                raise _Stopped
            if work.repeated:
                if not fit:
                    # It tells the model nothing, and would stand before what it asked for.
                    self._history.forget(reply)
                _, asked = await self._complete(work, answer=True)
                last = asked[0]
                if isinstance(last, ForUser) and last.text.strip() != work.request.strip():
                    return RunOutcome.ANSWERED, "The model answered.", last.text
                detail = "The model repeated itself, and gave no answer."
                return RunOutcome.CORRECTION_LIMIT, detail, None
            corrections = 0 if fit else corrections + 1
            if corrections > self.bounds.corrections:
                detail = f"The model's last {corrections} replies in a row could not be used."
                return RunOutcome.CORRECTION_LIMIT, detail, None
        detail = f"The model has replied {self.bounds.turns} times."
        return RunOutcome.TURN_LIMIT, detail, None

    # --- the model

    async def _complete(
        self, work: "_Work", *, answer: bool = False
    ) -> tuple[Completion, list[Meaning]]:
        """Ask the model for its next reply, and keep it; return it, and what it means.

        If `answer` is set, the model is asked for a reply that makes no call.
        """
        self._history.fit()
        system = prompt.instructions(
            self.toolbox,
            self.system_prompt,
            self._history.earlier(),
            described=not self._native,
            nobody=self.consent is None,
        )
        messages = [{"role": "system", "content": system}, *self.messages]
        # What is told below the last message is not kept. It is no message of its own, since some
        # models' templates refuse two messages of the user's in a row.
        below = ""
        if answer:
            below = f"\n\n{prompt.answer_now(work.request)}"
        elif not self._native and work.run.replies:
            below = prompt.reminder(work.request, [*work.left])
        if below and messages[-1]["role"] == "user":
            messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}{below}"}
        elif below:
            messages.append({"role": "user", "content": below.strip()})
        with work.stoppable():
            completion = await self.endpoint.complete(
                messages,
                functions=self._functions if not answer else (),
                schema=prompt.ANSWER if answer and self._schema else self._schema,
                on_text=self._hear if self.on_text else None,
            )
        work.run.replies.append(completion.usage)
        if answer:
            completion.calls.clear()
        meanings = read_completion(completion)
        self._keep(completion, meanings)
        return completion, meanings

    def _hear(self, text: str) -> None:
        """Pass on what of an unfinished reply is for the user, and nothing that may be a call."""
        said = certain_text(text)
        if said and self.on_text is not None:
            self.on_text(said)

    def _keep(self, completion: Completion, meanings: list[Meaning]) -> None:
        """Keep a reply, without what the model thought aloud."""
        text, calls = completion.text, completion.calls
        for call, meaning in zip(calls, meanings, strict=False):
            # Endpoints reject a history with calls that they would not have accepted.
            call["function"]["name"] = legal_name(call["function"]["name"])
            if not isinstance(meaning, CallRequest):
                call["function"]["arguments"] = "{}"
        if "think>" in text.lower() and not calls:
            text = meanings[0].text if isinstance(meanings[0], ForUser) else without_thoughts(text)
        reply = {"role": "assistant", "content": text or (None if calls else "(nothing)")}
        self.messages.append({**reply, "tool_calls": calls} if calls else reply)

    def _note(self, work: "_Work", entry: Entry) -> None:
        work.run.transcript.append(entry)
        if self.on_entry is not None:
            self.on_entry(entry)

    # --- its calls

    async def _make(self, work: "_Work", request: Meaning) -> str:
        """Make a call; return what to tell the model. Raises _Unfit if it cannot be made."""
        if not isinstance(request, CallRequest):
            raise _Unfit(request.problem if isinstance(request, Unreadable) else request.text)
        tool, arguments = self.toolbox.find(*request.names), request.arguments
        if tool is None:
            names = ", ".join(offered.name for offered in self.toolbox.tools) or "none"
            raise _Unfit(f"there is no tool {request.names[0][:80]!r}; the tools are: {names}")
        # Small models fill in every argument of a schema, and mean nothing by an empty text.
        required = tool.tool.input_schema.get("required", [])
        arguments = {name: one for name, one in arguments.items() if one != "" or name in required}
        problem = argument_problem(tool.tool.input_schema, arguments)
        if problem is not None:
            raise _Unfit(f"{tool.name}: {problem}")
        key = _key(tool, arguments)
        work.repeated = work.repeated or key in work.spent
        if work.spent.get(key) == "refused":
            raise _Unfit(
                f"the user has refused this call of {tool.name}, and is not asked again; do not "
                "ask for it again in this request"
            )
        if key in work.spent:
            raise _Unfit(
                f"{tool.name} was called with these arguments before; its result stands above"
            )
        if invented := self._invented(work, tool, arguments):
            work.left[tool.name] = tool
            raise _Unfit(invented)
        if request.said:
            self._note(work, Said(request.said))
        if self.on_call is not None:
            self.on_call(tool, arguments)
        work.left.pop(tool.name, None)
        again = (tool.tool.name, key[1]) in calls_in_doubt(tool.client) and not tool.repeatable
        with work.stoppable():
            agreed = await consents(self.consent, tool, arguments, again=again)
        if agreed:
            return await self._call(work, tool, arguments)
        work.spent[key] = "refused"
        why = "Nobody can be asked here" if self.consent is None else "The model has been told"
        self._note(work, NotCalled(f"Not called: {tool.name}. {why}."))
        if self.consent is None:
            return f"{tool.name} was not called. {prompt.NOBODY_TO_ASK} Tell the user so."
        return f"The user declined the call of {tool.name}: do not make it again."

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

    async def _call(self, work: "_Work", tool: OfferedTool, arguments: dict[str, Any]) -> str:
        """Make a call, follow the chain that it begins, and return it in words for the model."""
        work.run.calling, work.run.cut_off = tool.name, True
        same_server = {
            offered.tool.name: offered
            for offered in self.toolbox.tools
            if offered.client is tool.client
        }
        following = _Following(self, work, same_server)
        chain = await call_tool_with_chaining(
            tool.client,
            tool.tool.name,
            arguments,
            consent=following,
            call_timeout=self.call_timeout,
            on_step=following.told,
            on_proposal=self.on_proposal,
            follow_unadvertised=self.follow_unadvertised,
            stop=work.stop,
        )
        if chain.error is not None and not chain.steps and not tool.repeatable:
            # What may have taken effect is not made twice, unless that does no harm.
            work.spent[_key(tool, arguments)] = "changed"
        if chain.outcome is not Outcome.COMPLETED:
            self._note(work, NotCalled(f"The chain ended: {chain.detail}."))
        if chain.outcome is Outcome.FAILED:
            work.run.done.append(chain.detail)
            work.run.cut_off = False
        names = {own: offered.name for own, offered in same_server.items()}
        return prompt.chain_for_model(chain, names)


class _Stopped(Exception):
    """No more is to be done for this request."""


class _Unfit(Exception):
    """A call cannot be made; the message tells the model why."""


@dataclass
class _Work:
    """One request under way."""

    request: str
    run: Run = field(default_factory=Run)
    spent: dict[CallKey, Literal["changed", "read", "refused"]] = field(default_factory=dict)
    """The calls that are not made again: paying twice is not what was asked, what only reads
    brings nothing new as long as nothing was changed, and the host has said no."""
    mistakes: list[Message] = field(default_factory=list[Message])
    """The replies that could not be used, and what the model was told of each."""
    repeated: bool = False
    """The model has asked again for a call that brings nothing new."""
    told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The arguments that the model was told it has invented, each with its name."""
    left: dict[str, OfferedTool] = field(default_factory=dict[str, OfferedTool])
    """The tools whose calls were sent back for that, and that were not called since."""
    stop: ChainStop = field(default_factory=ChainStop)
    """Stops what is under way; a chain first says what it has come to."""
    halted: RunOutcome | None = None
    """Why no more is to be done."""

    def halt(self, why: RunOutcome) -> None:
        """Let no more be done."""
        self.halted = self.halted or why
        self.stop.stop()

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let what runs inside be stopped; raises _Stopped if the request is."""
        with self.stop.scope():
            yield
        if self.halted:
            raise _Stopped


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
        tool, arguments = replace(offered, tool=proposal.tool), proposal.arguments
        key = _key(tool, arguments)
        consent, refused = self.agent.consent, self.work.spent.get(key) == "refused"
        if refused or not await consents(consent, tool, arguments, again=again):
            self.work.spent.setdefault(key, "refused")
            return False
        self.work.run.calling, self.work.run.cut_off = offered.name, True
        return True

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether a follow-up call is made once more, though its effect is unknown."""
        return await self.allows(proposal, again=True)

    def told(self, step: Step) -> None:
        """Take note of a result."""
        tool = self.offered[step.tool]
        key = _key(tool, step.arguments)
        spent = self.work.spent
        if tool.says_read_only or step.result.is_error:
            spent.setdefault(key, "read")
        else:
            # What was read before may be otherwise now, and what failed may succeed.
            for read in [one for one, why in spent.items() if why == "read"]:
                del spent[read]
            spent[key] = "changed"
        self.agent._names.learn(tool.server, prompt.visible(step.without_words()))
        run, by_model = self.work.run, step.level == 1
        run.calling, run.cut_off = None, False
        failed = ", which failed" if step.result.is_error else ""
        whose = "model" if by_model else "server's directive"
        run.done.append(f"{step.tool} (by the {whose}){failed}")
        by: Literal["model", "directive"] = "model" if by_model else "directive"
        self.agent._note(self.work, Called(by, tool.server, step))


def _key(tool: OfferedTool, arguments: dict[str, Any]) -> CallKey:
    """Return what two equal calls have in common."""
    return tool.name, canonical(arguments)
