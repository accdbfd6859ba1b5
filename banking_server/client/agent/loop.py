"""The agent: it runs as long as the model's replies ask for tool calls.

    agent = Agent(endpoint, await Toolbox.gather({"bank": client}))
    run = await agent.ask("What do I have in my savings account?")
    print(run.answer or run.report())

It checks each call of the model and makes it through the chaining client, which follows the
server's directives without asking the model.
"""

import json
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from typing import Any, Final, Protocol

import anyio

from banking_server.client.agent import prompt
from banking_server.client.agent.endpoint import Endpoint, Message, ModelUnavailable
from banking_server.client.agent.reply import (
    OURS,
    CallRequest,
    Meaning,
    Unfit,
    read_completion,
    without_thoughts,
)
from banking_server.client.agent.toolbox import OfferedTool, Toolbox
from banking_server.client.agent.transcript import Called, Entry, Note, Run
from banking_server.client.names import Names, stem
from tool_chaining import ConsentPolicy, NobodyToAsk, Outcome, Proposal, Step
from tool_chaining.arguments import ArgumentCheck
from tool_chaining.client import DEFAULT_CALL_TIMEOUT
from tool_chaining.content import content_of, in_text, is_error
from tool_chaining.text import cut
from tool_chaining.values import CallKey, canonical

IDS_TOLD: Final = 20
"""The most known ids to list for a model that invented one."""

SHORT: Final = 300
"""Characters to keep of an old message if the conversation is too long."""

NO_RESULT: Final = "[No result.]"
"""The answer to a call while it runs, and for good if it is interrupted."""

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_LIKE_AN_ID: Final = re.compile(r"\w+(?:[@/.:_-]+\w+)+|[\w-]*\d[\w-]*")
_MONTH: Final = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"

_SPEAKS_OF_TIME: Final = re.compile(
    r"\b(?:today|tomorrow|tonight|next \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day|in an? \w+"
    rf"|in \d+ \w+|\d+(?:st|nd|rd|th)|\d+[./-]\d+[./-]|{_MONTH} \d+|\d+ {_MONTH})\b",
    re.IGNORECASE,
)
"""English words with which a user can mean a day; in other languages the model is asked back."""


@dataclass(frozen=True)
class Bounds:
    """How far one request may go."""

    turns: int = 12
    """The most replies of the model."""
    seconds: float = 600
    """Seconds for the whole request, questions to the user included."""
    history: int = 24_000
    """Characters of the conversation sent with a request, without the system message, about four
    to a token. The newest message is always complete."""


class CallPolicy(Protocol):
    """Decides for the host whether to make a call of the model or of a directive."""

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any], again: bool) -> bool:
        """Return whether the call may be made. It may ask the user.

        `again`: the tool is in doubt, since it may have run before. Then a person must agree.
        """
        ...


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
    """Asked before each call of the model or of a directive, unless a server that the host trusts
    marks the tool as read-only. Without it, only such tools are called, and the prompt says that
    nobody can be asked."""
    system_prompt: str = ""
    """The host's own words at the start of the system prompt."""
    follow_unadvertised: bool = False
    """Follow directives of servers that do not advertise the extension."""
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT
    """Seconds for each call, as in `Follower`."""
    on_call: Callable[[OfferedTool, dict[str, Any]], None] | None = None
    """Called with each valid call of the model, before the host is asked for consent."""
    on_proposal: Callable[[Proposal], None] | None = None
    """Called with each call that a directive asks for."""
    on_entry: Callable[[Entry], None] | None = None
    """Called with each entry of the transcript as it happens."""

    def __post_init__(self) -> None:
        tools, self._native = self.toolbox.tools, self.endpoint.settings.tools == "native"
        self._schema = None if self._native or not tools else prompt.reply_schema(tools)
        self._functions = [tool.as_function() for tool in tools] if self._native else []
        self._system = prompt.instructions(
            self.toolbox,
            self.system_prompt,
            described=not self._native,
            nobody=self.consent is None,
        )
        self._past: list[list[Message]] = []
        """The messages of each earlier request."""
        self._now: list[Message] = []
        """The messages of the current request."""
        self._scope: anyio.CancelScope | None = None
        """The scope of the current request."""
        self._names = Names()
        """The ids named by the user, or by servers in texts that the model could read."""
        for server, words in self.toolbox.instructions.items():
            offered = (tool.in_words() for tool in tools if tool.server == server)
            self._names.add_texts(server, words, *offered)

    async def ask(self, words: str) -> Run:
        """Work on a request until the model answers, a bound is reached, or `stop` is called.

        However it ends, even if cancelled from outside, the conversation can go on: it records what
        happened until then. Make requests to one agent one after the other.
        """
        request = _Request(self, words)
        run = request.run
        self._now = [{"role": "user", "content": words}]
        for server in self.toolbox.instructions:
            self._names.add_texts(server, *_LIKE_AN_ID.findall(words))
        try:
            with anyio.move_on_after(self.bounds.seconds) as self._scope:
                run.detail, run.answer = await self._work(request)
            if self._scope.cancelled_caught and anyio.current_time() >= self._scope.deadline:
                run.detail = f"The {self.bounds.seconds:g} seconds for this request are over."
        except ModelUnavailable as error:
            run.detail = str(error)
        finally:
            self._scope = None
            if run.answer is None:
                ended = f"[No answer. {run.report()}]"
                self._now.append({"role": "assistant", "content": ended})
            self._past.append(self._now)
        return run

    def stop(self) -> None:
        """Stop the current request, if there is one; its `ask` returns.

        Call it in the event loop's thread.
        """
        if self._scope is not None:
            self._scope.cancel()

    async def _work(self, request: "_Request") -> tuple[str, str | None]:
        """Let the model reply until it answers; return how it ended, and the answer.

        Raises ModelUnavailable.
        """
        # No message before this is a corrected mistake of the model.
        in_order = len(self._now)
        for _ in range(self.bounds.turns):
            before_reply = len(self._now)
            asked = await self._complete(request)
            if isinstance(asked[0], str):
                problem = request.answer_problem(asked[0])
                if problem is None:
                    return "The model answered.", asked[0]
                asked = [Unfit(problem)]
            answers: list[Message] = [
                {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
                for call in self._now[-1].get("tool_calls", ())
            ] or [{"role": "user", "content": NO_RESULT}]
            self._now += answers
            was_made = False
            for meaning, answer in zip(asked, answers, strict=True):
                try:
                    answer["content"] = await request.make(meaning)
                    was_made = True
                except Unfit as unfit:
                    wrong = f"No call was made: {unfit}."
                    request.note(Note(f"{wrong} The model has been told."))
                    answer["content"] = (
                        f"{wrong} Reply with the call put right, or with your answer to the user "
                        "in plain text."
                    )
            if was_made:
                # Drop the corrected mistake, so that it sets no example.
                del self._now[in_order:before_reply]
                in_order = len(self._now)
            if request.repeated:
                if not was_made:
                    # It is of no use to the model, and would precede the result it asked for.
                    del self._now[before_reply:]
                [last, *_] = await self._complete(request, answer=True)
                if isinstance(last, str) and request.repetition(last) is None:
                    return "The model answered.", last
                del self._now[-1]  # The note that `ask` adds at the end replaces it.
                return "The model repeated itself, and gave no answer.", None
        return f"The model has replied {self.bounds.turns} times.", None

    async def _complete(self, request: "_Request", *, answer: bool = False) -> list[Meaning]:
        """Ask the model for its next reply, and keep it; return its meaning.

        If `answer` is set, the model is asked for a reply that makes no call.
        """
        messages = [{"role": "system", "content": self._system}, *self._fitting()]
        # This is not kept. It is not a separate message, since some models' templates refuse two
        # user messages in a row.
        if answer:
            messages[-1] = _with(messages[-1], prompt.answer_now(request.words))
        elif not self._native and request.replies:
            messages[-1] = _with(
                messages[-1], prompt.reminder(request.words, [*request.not_called])
            )
        completion = await self.endpoint.complete(
            messages,
            functions=self._functions if not answer else (),
            schema=prompt.ANSWER if answer and self._schema else self._schema,
        )
        request.replies += 1
        if answer:
            completion.calls.clear()
        names = [tool.name for tool in self.toolbox.tools]
        meanings, calls = read_completion(completion, names), completion.calls
        text = without_thoughts(completion.text) or (None if calls else "(nothing)")
        tool_calls = {"tool_calls": calls} if calls else {}
        self._now.append({"role": "assistant", "content": text, **tool_calls})
        return meanings

    def _fitting(self) -> list[Message]:
        """Return the conversation, cut to its bound.

        First the oldest requests go, then the oldest messages of the current one are cut.
        """
        while self._past and self._size() > self.bounds.history:
            del self._past[0]
        for message in self._now[1:-1]:
            if self._size() > self.bounds.history and "tool_calls" not in message:
                message["content"] = cut(message["content"], SHORT)
        return [*chain(*self._past), *self._now]

    def _size(self) -> int:
        return len(json.dumps([self._past, self._now], ensure_ascii=False))


def _with(message: Message, below: str) -> Message:
    return {**message, "content": f"{message['content']}\n\n{below}"}


@dataclass
class _Request(ConsentPolicy):
    """The current request, and its calls.

    It is also the consent policy of its chains, for follow-up calls.
    """

    agent: Agent
    words: str
    run: Run = field(default_factory=Run)
    replies: int = 0
    """The number of the model's replies."""
    not_again: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The calls that must not be repeated, and why: they `changed` something, they `read` data that
    has not changed since, or the host `refused` them."""
    repeated: bool = False
    """The model repeated a useless call, or our own words in an answer."""
    sent_back: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The invented arguments, each with its name, that the model had to correct."""
    not_called: dict[str, OfferedTool] = field(default_factory=dict[str, OfferedTool])
    """The tools of such calls that the model has not called since."""
    offered: dict[str, OfferedTool] = field(default_factory=dict[str, OfferedTool])
    """The tools of the current chain's server that the model may call, by the server's names."""

    def note(self, entry: Entry) -> None:
        """Add an entry to the transcript, and pass it to the host."""
        self.run.transcript.append(entry)
        if self.agent.on_entry is not None:
            self.agent.on_entry(entry)

    def repetition(self, answer: str) -> str | None:
        """Say what an answer repeats: the program's words, or the request; None if neither."""
        folded = " ".join(answer.split()).casefold()
        if any(words.casefold() in folded for words in OURS):
            return "instructions; say to the user in your own words what was done, and what was not"
        if answer.strip() == self.words.strip():
            return "request; say what was done, and what was not"
        return None

    def answer_problem(self, answer: str) -> str | None:
        """Say, once, what is wrong with an answer: a repetition, or a call that was never made."""
        if repeated := self.repetition(answer):
            self.repeated = True
            return f"that repeats the {repeated}"
        left, self.not_called = self.not_called, {}
        if not left or answer.rstrip().endswith("?"):
            return None
        ids = [one for tool in left.values() for one in self.agent._names.returned(tool.server, "")]
        known = f" The ids are: {', '.join(dict.fromkeys(ids[:IDS_TOLD]))}." if ids else ""
        return (
            f"{', '.join(left)} was not called yet.{known} If the user asked for it, call it now. "
            "Otherwise say what was done, and what was not"
        )

    def check(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Raise Unfit if a call of the model must not be made."""
        problem = ArgumentCheck().problem("", tool.input_schema, arguments)
        if problem is not None:
            raise Unfit(f"{tool.name}: {problem}")
        spent = self.not_again.get(_key(tool, arguments))
        self.repeated = self.repeated or spent is not None
        if spent == "refused":
            raise Unfit(
                f"the user has refused this call of {tool.name}, and is not asked again; do not "
                "ask for it again in this request"
            )
        if spent is not None:
            raise Unfit(
                f"{tool.name} was called with these arguments before; its result stands above"
            )
        if invented := self.never_named(tool, arguments):
            self.not_called[tool.name] = tool
            raise Unfit(invented)

    def never_named(self, tool: OfferedTool, arguments: dict[str, Any]) -> str:
        """Say which values in a call neither the server nor the user has named; each counts once.

        Ids first; then optional dates, codes and other single words. Their values show what they
        are, because most servers describe a date in words only.
        """
        names, schema = self.agent._names, tool.input_schema
        ids = names.unnamed(tool.server, arguments, schema)
        others = [
            (name, value)
            for name, value in arguments.items()
            if name not in tool.needed
            and isinstance(value, str)
            and not re.search(r"\s", value)
            and value.casefold() not in self.words.casefold()
            and not names.knows(tool.server, value)
            and not (_DATE.match(value) and _SPEAKS_OF_TIME.search(self.words))
        ]
        new = [one for one in ids or others if one not in self.sent_back]
        self.sent_back.update(new)
        if not new:
            return ""
        if not ids:
            kept = {name: value for name, value in arguments.items() if name not in dict(new)}
            call = json.dumps({"tool": tool.name, "arguments": kept})
            without = f"The user named no {' and no '.join(dict(new))}, and it is optional."
            return f"{without} Leave it out, and reply: {call}"
        said: list[str] = []
        for name, value in new:
            shown = json.dumps(value)
            said.append(f"{name} {shown} is no id that the server or the user has named.")
            said.append(self.source_of_ids(tool, name))
        return " ".join(dict.fromkeys(filter(None, said))).rstrip(".")

    def source_of_ids(self, tool: OfferedTool, argument: str) -> str:
        """Tell the model the possible ids for an argument, or the tool that lists them."""
        names = self.agent._names
        lists = self.agent.toolbox.lists(tool.server, stem(argument))
        ids = names.returned(tool.server, argument)
        ids = ids or (names.returned(tool.server, "") if lists is None else [])
        if ids:
            return f"The ids that the server has returned so far: {', '.join(ids[:IDS_TOLD])}."
        if lists is not None:
            return f"Call {lists.name} first: it lists them." if lists is not tool else ""
        maybe = self.agent.toolbox.may_list(tool.server)
        return f"Call {maybe.name} first: it may list them." if maybe else ""

    async def make(self, asked: Meaning) -> str:
        """Make a call; return what to tell the model. Raises Unfit if it cannot be made."""
        agent = self.agent
        if not isinstance(asked, CallRequest):
            raise Unfit(str(asked))
        tool, arguments = agent.toolbox.find(*asked.names), asked.arguments
        if tool is None:
            names = ", ".join(offered.name for offered in agent.toolbox.tools) or "none"
            raise Unfit(f"there is no tool {asked.names[0][:80]!r}; the tools are: {names}")
        # Small models fill in every argument, with an empty text for those they do not need.
        needed = tool.needed
        arguments = {name: one for name, one in arguments.items() if one != "" or name in needed}
        self.check(tool, arguments)
        if asked.said:
            self.note(Note(f"The model says: {asked.said}"))
        if agent.on_call is not None:
            agent.on_call(tool, arguments)
        self.not_called.pop(tool.name, None)
        key = _key(tool, arguments)
        if await self.agrees(tool, arguments, again=self.in_doubt(tool, arguments)):
            return await self.call(tool, arguments)
        self.not_again[key] = "refused"
        why = "Nobody can be asked here" if agent.consent is None else "The model has been told"
        self.note(Note(f"Not called: {tool.name}. {why}."))
        if agent.consent is None:
            return f"{tool.name} was not called. {prompt.NOBODY_TO_ASK} Tell the user so."
        return f"The user declined the call of {tool.name}: do not make it again."

    async def agrees(self, tool: OfferedTool, arguments: dict[str, Any], *, again: bool) -> bool:
        """Return whether the host allows a call, whoever asks for it (TC-C-20, TC-C-55)."""
        consent = self.agent.consent
        return tool.read_only or (
            consent is not None and await consent.allows(tool, arguments, again) is True
        )

    def in_doubt(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the answer to a call of the tool was lost (TC-C-55)."""
        call = CallKey.of(tool.tool.name, arguments)
        return any(one.everywhere for one in tool.follower.conversation.doubts(call.tool, call))

    async def call(self, tool: OfferedTool, arguments: dict[str, Any]) -> str:
        """Make a call, follow its chain, and return the result as text for the model."""
        agent, self.run.calling = self.agent, tool.name
        same_server = [one for one in agent.toolbox.tools if one.follower is tool.follower]
        self.offered = {one.tool.name: one for one in same_server}
        self.trusts_hints = tool.trusted
        follower = replace(
            tool.follower,
            consent=self,
            call_timeout=agent.call_timeout,
            follow_unadvertised=agent.follow_unadvertised,
            on_step=self.record,
        )
        made = await follower.call_tool(tool.tool.name, arguments)
        in_doubt = self.in_doubt(tool, arguments)
        if not made.steps and in_doubt and not tool.read_only:
            # Never repeat a call that may have taken effect.
            self.not_again[_key(tool, arguments)] = "changed"
        if made.outcome is not Outcome.COMPLETED:
            self.note(Note(f"The chain ended: {made.detail}."))
        return prompt.chain_for_model(tool.name, made, in_doubt=in_doubt)

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether a follow-up call is made. Raises NobodyToAsk."""
        return await self._allows(proposal, again=False)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether to make a call that may have run before. The question says so."""
        return await self._allows(proposal, again=True)

    async def _allows(self, proposal: Proposal, *, again: bool) -> bool:
        if self.agent.on_proposal is not None:
            self.agent.on_proposal(proposal)
        offered = self.offered.get(proposal.tool.name)
        if offered is None:
            return False  # A directive may call only what the model may call (TC-C-20).
        # As the server lists it now: the tool's annotations may have changed.
        tool, arguments = replace(offered, tool=proposal.tool), proposal.arguments
        key = _key(tool, arguments)
        if self.not_again.get(key) == "refused" or not await self.agrees(
            tool, arguments, again=again
        ):
            self.not_again.setdefault(key, "refused")
            if self.agent.consent is None:
                raise NobodyToAsk
            return False
        self.run.calling = offered.name
        return True

    def record(self, step: Step) -> None:
        """Remember the result of a step, and its consequences for other calls."""
        tool = self.offered[step.tool]
        key = _key(tool, step.arguments)
        if tool.tool.read_only or step.is_error:
            self.not_again.setdefault(key, "read")
        else:
            # Earlier reads may be stale now, and what failed may succeed.
            self.not_again = {one: why for one, why in self.not_again.items() if why != "read"}
            self.not_again[key] = "changed"
        self.run.calling = None
        seen = prompt.visible(step.without_words())
        self.agent._names.add_result(tool.server, seen)
        if is_error(seen):
            # An error only repeats what the model made up.
            given = {str(value) for value in step.arguments.values()}
            texts = map(in_text, content_of(seen))
            named = {id_ for text in texts for id_ in _LIKE_AN_ID.findall(text)}
            self.agent._names.add_texts(tool.server, *named - given)
        self.note(Called("model" if step.level == 1 else "directive", tool.server, step))


def _key(tool: OfferedTool, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return the identity of a call: equal calls have the same."""
    return tool.name, canonical(arguments)
