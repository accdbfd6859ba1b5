"""A conversation with the agent: lines of a person or a program, and the response to each.

The event loop runs in a thread of its own. The main thread reads the lines, so that the terminal's
own line editing works, and so that Ctrl-C reaches it and stops a request.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from rich.console import Console

from banking_server.client.agent.endpoint import Endpoint
from banking_server.client.agent.loop import Agent
from banking_server.client.agent.prompt import NOBODY_TO_ASK
from banking_server.client.agent.settings import ANY_AGENT, AgentConfiguration, ModelSettings
from banking_server.client.agent.toolbox import OfferedTool, Toolbox
from banking_server.client.agent.transcript import Called, Entry, Run
from banking_server.client.narrator import Narrator
from banking_server.client.plain import NAME, SHOWN
from banking_server.client.printing import say, write
from banking_server.client.questions import TerminalQuestions
from banking_server.client.status_line import StatusLine
from banking_server.client.typed import read_line
from tool_chaining.client import DEFAULT_CALL_TIMEOUT
from tool_chaining.text import cut, one_line

COMMANDS: Final = {
    "/help": "show this",
    "/tools": "list the tools that the model has",
    "/quit": "end the conversation, as Ctrl-D does",
}
"""The commands that can be typed instead of requests, with their effects."""

_LOOK: Final = 0.2
"""The most seconds until Ctrl-C is noticed."""


@dataclass
class Terminal:
    """Shows what happens in a conversation, and asks the user for consent."""

    answers: Console
    """Shows the answers, and nothing else if a program reads them."""
    notes: Console
    """Shows everything else."""
    person: TerminalQuestions | None
    """Asks for consent. None means that nobody can be asked, so nothing may change."""
    waiting: StatusLine
    is_typed: bool = True
    """Whether a person types the lines. Otherwise it explains nothing, and Ctrl-C ends it all."""

    def __post_init__(self) -> None:
        self.narrator = Narrator(self.notes, questions=None, waiting=self.waiting)

    def tell(self, text: str, *, indent: int = 0) -> None:
        """Write a text and a line break."""
        say(self.notes, cut(one_line(text), SHOWN), indent=indent)

    def show(self, entry: Entry) -> None:
        """Show an entry of the transcript."""
        if isinstance(entry, Called):
            if self.person is not None:
                self.person.names.add_result(entry.server, entry.step.result)
            self.narrator.show_step(entry.step)
        else:
            self.tell(f"({entry.text})", indent=3)
        self.waiting.show("Thinking")

    def end(self, run: Run) -> None:
        """Show how a request ended."""
        self.waiting.remove()
        if run.answer is None:
            self.tell(run.report())
        else:
            self._answer(run.answer)
        self.notes.print()

    def _answer(self, text: str) -> None:
        """Show an answer: unchanged to a program, else indented, unlike our own lines."""
        if self.answers is self.notes:
            self.answers.print()
            say(self.answers, text, indent=3)
        else:
            write(self.answers, text if text.endswith("\n") else f"{text}\n")

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any], again: bool) -> bool:
        """Return whether the user consents to a call: a `CallPolicy`."""
        return self.person is not None and await self.person.consents(
            tool.tool,
            arguments,
            trust_hints=tool.trusted,
            name=tool.name,
            server=tool.server,
            again=again,
        )

    def announce(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Show a call of the model, the first of a chain, before asking for consent."""
        self.notes.print()
        self.narrator.begin(tool.name, arguments, "the model asked for it")


def chat(
    settings: ModelSettings,
    connect: Callable[[], AbstractAsyncContextManager[Mapping[str, Client]]],
    terminal: Terminal,
    *,
    prompt: str | None = None,
    configuration: AgentConfiguration = ANY_AGENT,
    trust_hints: bool = False,
    follow_unadvertised: bool = False,
    call_timeout: float = DEFAULT_CALL_TIMEOUT,
) -> bool:
    """Hold a conversation until the user ends it with `/quit` or the end of the input.

    Each line is a request, or one of `COMMANDS`; `prompt`, if given, is the only request. Returns
    whether all were answered or carried out. With `trust_hints`, tools that their server marks as
    read-only are called without asking.

    Ctrl-C stops a request. Raises KeyboardInterrupt at the second Ctrl-C, or at the first if no
    person types; also ToolsUnavailable, and whatever `connect` raises.
    """

    @asynccontextmanager
    async def connected() -> AsyncIterator[Agent]:
        terminal.waiting.show("Connecting")
        async with Endpoint(settings) as endpoint, connect() as clients:
            toolbox = await Toolbox.gather(
                clients,
                trusted=clients if trust_hints else (),
                call_timeout=call_timeout,
                allowed=configuration.tools,
                note=terminal.tell,
            )
            terminal.waiting.remove()
            yield Agent(
                endpoint,
                toolbox,
                consent=terminal if terminal.person else None,
                system_prompt=configuration.system_prompt,
                follow_unadvertised=follow_unadvertised,
                call_timeout=call_timeout,
                on_call=terminal.announce,
                on_proposal=terminal.narrator.propose,
                on_entry=terminal.show,
            )

    try:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(connected()) as agent,
        ):
            if terminal.person is None:
                terminal.tell(f"{NOBODY_TO_ASK} To be asked, run it in a terminal.")
            if prompt is not None:
                return _ask(portal, agent, terminal, prompt)
            return _converse(portal, agent, terminal)
    except BaseExceptionGroup as several:
        # Ctrl-C, passed on by the task that it interrupted.
        if several.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        terminal.waiting.remove()


def _converse(portal: BlockingPortal, agent: Agent, terminal: Terminal) -> bool:
    """Handle each line until the input ends; return whether all succeeded."""
    if terminal.is_typed:
        tools = len(agent.toolbox.tools)
        terminal.tell(f"Model: {agent.endpoint.model}, with {tools} tools.")
        terminal.tell("/help shows what you can type. Ctrl-C stops a request, /quit ends.")
    good = True
    while True:
        try:
            line = read_line("you> ").strip()
        except EOFError:
            return good
        except KeyboardInterrupt:
            if not terminal.is_typed:
                raise
            terminal.tell("(Ctrl-D or /quit ends the conversation.)")
            continue
        if line == "/quit":
            return good
        if line.startswith("/"):
            good &= _command(line, agent, terminal)
        elif line:
            good &= _ask(portal, agent, terminal, line)


def _command(line: str, agent: Agent, terminal: Terminal) -> bool:
    """Carry out a command; return whether it could be done."""
    if line == "/help":
        for known, about in COMMANDS.items():
            terminal.tell(f"{known:6}  {about}", indent=3)
        terminal.tell("Anything else is a request to the model. Ctrl-C stops it.", indent=3)
    elif line == "/tools":
        for tool in agent.toolbox.tools:
            about = one_line(tool.tool.title or tool.description, NAME)
            asked = " (you are asked first)" if terminal.person else " (not called here)"
            terminal.tell(f"{tool.name}: {about}{'' if tool.read_only else asked}", indent=3)
    else:
        terminal.tell(f"There is no {line}. The commands are {', '.join(COMMANDS)}.")
        return False
    return True


def _ask(portal: BlockingPortal, agent: Agent, terminal: Terminal, request: str) -> bool:
    """Make a request of the agent, and show how it ends; return whether it was answered."""
    terminal.waiting.show("Thinking")
    future = portal.start_task_soon(agent.ask, request)
    stopped = False
    while not future.done():
        try:
            # With a timeout: if another thread gets the signal, this one does not wake up.
            wait([future], _LOOK)
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            portal.start_task_soon(agent.stop)
    run = future.result()
    terminal.end(run)
    if stopped and not terminal.is_typed:
        raise KeyboardInterrupt
    return run.answer is not None
