"""A conversation with the agent: lines of a person or of a program, and what comes of each.

The event loop runs in a thread of its own. The main thread reads the lines, so that the terminal's
own line editing works, and so that Ctrl-C reaches it and stops a request.
"""

import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from rich.console import Console

from banking_server.agent.configuration import ANY_AGENT, AgentConfiguration
from banking_server.agent.endpoint import Endpoint
from banking_server.agent.loop import Agent
from banking_server.agent.settings import ModelSettings
from banking_server.agent.toolbox import OfferedTool, Toolbox
from banking_server.agent.transcript import (
    Called,
    Calling,
    ChainStopped,
    Corrected,
    Declined,
    Entry,
    ModelReplied,
    Run,
    RunOutcome,
    Said,
)
from banking_server.chaining import DEFAULT_CALL_TIMEOUT, Proposal
from banking_server.host.markdown_stream import MarkdownStream, PlainStream
from banking_server.host.narrator import Narrator
from banking_server.host.plain import SHOWN
from banking_server.host.printing import say
from banking_server.host.questions import TerminalQuestions
from banking_server.host.status_line import StatusLine
from banking_server.host.typed import read_line
from banking_server.text import cut, one_line

COMMANDS: Final = {
    "/help": "show this",
    "/tools": "list the tools that the model has",
    "/save FILE": "write the conversation to a new file, as Markdown",
    "/quit": "end the conversation, as Ctrl-D does",
}
"""What can be typed beside requests, and what it does."""

_THINKING: Final = "Thinking"

_LOOK: Final = 0.2
"""Seconds after which Ctrl-C is seen at the latest."""

_ABOUT: Final = 100
"""Characters that `/tools` shows of what a tool is about."""

_IN_A_PIPE: Final = (
    "Nobody can be asked here, so only tools that read are called, and nothing is changed. To be "
    "asked, run it in a terminal."
)


class Record(Protocol):
    """Keeps what was said, for `/save`."""

    def add(self, request: str, run: Run) -> None:
        """Keep a request and what came of it."""
        ...

    def save(self, file: str) -> str:
        """Write all of it to a new file, and return what to tell. Raises ValueError likewise."""
        ...


@dataclass
class Terminal:
    """Shows what happens in a conversation, and asks the user for consent."""

    speech: PlainStream | MarkdownStream
    """Shows what the model says."""
    notes: Console
    """Shows everything else."""
    person: TerminalQuestions | None
    """Who is asked for consent. None means that nobody can be asked, so that nothing is changed."""
    waiting: StatusLine
    record: Record
    is_typed: bool = True
    """Whether a person types the lines. Otherwise nothing is explained, and Ctrl-C ends it all."""
    interrupted: bool = False
    """Whether Ctrl-C has ended the conversation."""

    def __post_init__(self) -> None:
        self._plain = isinstance(self.speech, PlainStream)
        """Whether nobody watches: a program gets the answers, and nothing else."""
        self.on_text = None if self._plain else self.speech.say
        self._narrator = Narrator(self.notes, questions=None)

    def tell(self, text: str, *, indent: int = 0) -> None:
        """Write a text and a line break, behind what the model has said."""
        self.speech.end()
        say(self.notes, cut(one_line(text), SHOWN), indent=indent)

    def interrupt(self) -> None:
        """Take note of Ctrl-C: it ends a conversation that no person types."""
        self.interrupted = not self.is_typed

    def show(self, entry: Entry) -> None:
        """Show an entry of the transcript."""
        if not isinstance(entry, ModelReplied):  # The rest of its text may follow.
            self.speech.end()
        match entry:
            case Called():
                if self.person is not None:
                    self.person.names.learn(entry.server, entry.step.result)
                self._narrator.told(entry.step)
                self.waiting.on(_THINKING)
            case Said() if self._plain:
                self.tell(f"(The model says: {entry.text})")
            case ChainStopped():
                self.tell(f"(The chain ended: {entry.detail}.)", indent=3)
                self.waiting.on(_THINKING)
            case Declined():
                why = "Nobody can be asked here" if entry.nobody else "The model has been told"
                self.tell(f"(Not called: {entry.tool.name}. {why}.)", indent=3)
            case Corrected():
                self.tell(f"(No call was made: {entry.problem}. The model has been told.)")
            case Calling():
                self.waiting.on(f"Waiting for {entry.tool.name}")

    def end(self, request: str, run: Run) -> None:
        """Show how a request ended."""
        self.waiting.over()
        if self._plain and run.answer:
            self.speech.say(run.answer)
        self.speech.end()
        if run.outcome is not RunOutcome.ANSWERED:
            self.tell(run.report())
        self.tell(footer(run))
        self.notes.print()
        self.record.add(request, run)

    async def allows(
        self, tool: OfferedTool, arguments: dict[str, Any], again: bool = False
    ) -> bool:
        """Return whether the user consents to a call that may change something, whoever asks."""
        return self.person is not None and await self.person.consents(
            tool.tool,
            arguments,
            trust_hints=tool.trusted,
            name=tool.name,
            server=tool.server,
            again=again,
        )

    async def allows_again(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return the same of a call that was started before, and whose effect is unknown."""
        return await self.allows(tool, arguments, again=True)

    def announce(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Show a call that the model asks for, the first of a chain, before consent is asked."""
        self.speech.end()
        self.notes.print()
        self._narrator.begin(tool.name, arguments, "the model asked for it")

    def propose(self, proposal: Proposal) -> None:
        """Show a call that a directive asks for, before consent is asked for."""
        self.speech.end()
        self._narrator.proposed(proposal)


Connect = Callable[[], AbstractAsyncContextManager[Mapping[str, Client]]]
"""Connects to the servers; the keys are names for them."""


def chat(
    settings: ModelSettings,
    connect: Connect,
    terminal: Terminal,
    *,
    prompt: str | None = None,
    configuration: AgentConfiguration = ANY_AGENT,
    trust_hints: bool = False,
    follow_unadvertised: bool = False,
    call_timeout: float = DEFAULT_CALL_TIMEOUT,
) -> bool:
    """Hold a conversation until the user ends it with `/quit` or the end of the input.

    Each line is a request, or one of `COMMANDS`. If `prompt` is given, it is the only request, and
    no line is read. Returns whether each request was answered, and each command carried out.

    `configuration` is what the agent is told, and which tools it may use. `trust_hints` says
    whether a tool that its server calls read-only is called without asking. The rest is as of
    `Agent`.

    Ctrl-C stops the request under way, and the conversation goes on; a second one, before the
    request has stopped, raises KeyboardInterrupt. So does the first where no person types. Raises
    ToolsUnavailable, and what `connect` raises.
    """

    @asynccontextmanager
    async def connected() -> AsyncIterator[tuple[Agent, Toolbox]]:
        terminal.waiting.on("Connecting")
        async with Endpoint(settings) as endpoint, connect() as clients:
            toolbox = await Toolbox.gather(
                clients,
                trusted=clients if trust_hints else (),
                call_timeout=call_timeout,
                allowed=configuration.tools,
            )
            terminal.waiting.over()
            yield (
                Agent(
                    endpoint,
                    toolbox,
                    consent=terminal if terminal.person else None,
                    system_prompt=configuration.system_prompt,
                    follow_unadvertised=follow_unadvertised,
                    call_timeout=call_timeout,
                    on_call=terminal.announce,
                    on_proposal=terminal.propose,
                    on_entry=terminal.show,
                    on_text=terminal.on_text,
                ),
                toolbox,
            )

    try:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(connected()) as (agent, toolbox),
        ):
            if terminal.person is None:
                terminal.tell(_IN_A_PIPE)
            if prompt is not None:
                good = _ask(portal, agent, terminal, prompt)
            else:
                if terminal.is_typed:
                    terminal.tell(f"Model: {settings.name}, with {len(toolbox.tools)} tools.")
                    terminal.tell(
                        "/help shows what you can type. Ctrl-C stops a request, /quit ends."
                    )
                good = _converse(portal, agent, terminal, toolbox)
    except BaseExceptionGroup as several:
        # A second Ctrl-C, as what was under way then has passed it on.
        if several.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        terminal.waiting.over()
    if terminal.interrupted:
        raise KeyboardInterrupt
    return good


def _converse(portal: BlockingPortal, agent: Agent, terminal: Terminal, toolbox: Toolbox) -> bool:
    """Take line after line, to the last; return whether something was done about each."""
    good = True
    while not terminal.interrupted:
        try:
            line = read_line("you> ").strip()
        except EOFError:
            break
        except KeyboardInterrupt:
            terminal.interrupt()
            if terminal.is_typed:
                terminal.tell("(Ctrl-D or /quit ends the conversation.)")
            continue
        command, _, more = line.partition(" ")
        if line == "/quit":
            break
        if command == "/save":
            good &= _save(terminal, more.strip())
        elif line == "/help":
            for known, about in COMMANDS.items():
                terminal.tell(f"{known:10}  {about}", indent=3)
            terminal.tell("All else is a request to the model. Ctrl-C stops it.", indent=3)
        elif line == "/tools":
            for tool in toolbox.tools:
                about = one_line(tool.tool.title or tool.tool.description or "", _ABOUT)
                asked = " (you are asked first)" if terminal.person else " (not called here)"
                note = "" if tool.read_only else asked
                terminal.tell(f"{tool.name}: {about}{note}", indent=3)
        elif line.startswith("/"):
            terminal.tell(f"There is no {line}: there are {', '.join(COMMANDS)}.")
            good = False
        elif line:
            good &= _ask(portal, agent, terminal, line)
    return good


def _save(terminal: Terminal, file: str) -> bool:
    """Save the conversation, and say what came of it; return whether it was saved."""
    try:
        if not file:
            raise ValueError("/save needs the name of a file to write to.")
        terminal.tell(terminal.record.save(file))
    except ValueError as error:
        terminal.tell(str(error))
        return False
    return True


def _ask(portal: BlockingPortal, agent: Agent, terminal: Terminal, request: str) -> bool:
    """Make a request of the agent, and show how it ends; return whether it was answered."""

    def stop() -> None:
        terminal.interrupt()
        portal.start_task_soon(agent.stop)

    with _ctrl_c(stop):
        terminal.waiting.on(_THINKING)
        future = portal.start_task_soon(agent.ask, request)
        while not future.done():
            # Not without end: where another thread is given the signal, this one is not woken.
            wait([future], _LOOK)
        run = future.result()
        terminal.end(request, run)
    return run.outcome is RunOutcome.ANSWERED


@contextmanager
def _ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `stop`; a second one does what it did before.

    Raised as KeyboardInterrupt, it would come wherever this thread is, and break off more than the
    request.
    """
    before = signal.getsignal(signal.SIGINT)

    def first(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def footer(run: Run) -> str:
    """Return who decided on the calls of a request, and what it cost, on one line."""
    mine = sum(called.by == "model" for called in run.calls)
    usage = run.usage
    return (
        f"[{_many(mine, 'call')} by the model, {_many(len(run.calls) - mine, 'call')} by "
        f"directive; {_many(len(run.replies), 'reply', 'replies')}, "
        f"{'about ' if usage.estimated else ''}{usage.prompt_tokens} + "
        f"{usage.completion_tokens} tokens, {run.seconds:.1f} s]"
    )


def _many(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"
