"""A conversation with the agent at the terminal.

The event loop runs in a thread of its own. The main thread reads the user's lines, so that the
terminal's own line editing and history work, and so that Ctrl-C reaches it and stops a request.
"""

import importlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.types import CallToolResult

from banking_server.agent.configuration import ANY_AGENT, AgentConfiguration
from banking_server.agent.endpoint import Endpoint
from banking_server.agent.loop import Agent
from banking_server.agent.resources import MayRead
from banking_server.agent.settings import ModelSettings
from banking_server.agent.toolbox import OfferedTool, Toolbox
from banking_server.agent.transcript import (
    Called,
    Calling,
    ChainStopped,
    Corrected,
    Declined,
    Entry,
    Forgotten,
    ModelReplied,
    Run,
    RunOutcome,
    Said,
)
from banking_server.chaining import DEFAULT_CALL_TIMEOUT, Proposal, Step

PROMPT: Final = "you> "
QUIT: Final = "/quit"

_INDENT: Final = " " * 3

_NAMED: Final = 50
"""Tools that are named at the beginning."""


def read_line(prompt: str) -> str:
    """Return the user's next line, with editing and history if the platform has them.

    To be called in the main thread. Raises EOFError if there are no more lines.
    """
    with suppress(ImportError):
        # Importing it gives input() line editing.
        importlib.import_module("readline")
    sys.stdout.flush()
    return input(prompt if sys.stdin.isatty() else "")


class Tell(Protocol):
    """Writes whole lines."""

    def __call__(self, text: str, *, indent: int = 0) -> None:
        """Write a text and a line break."""
        ...


@dataclass(frozen=True)
class Terminal:
    """What a conversation needs of a terminal."""

    write: Callable[[str], None]
    """Writes a piece of the model's text as it comes, and adds no line break."""
    tell: Tell
    consents: Callable[[OfferedTool, dict[str, Any]], Awaitable[bool]] | None
    """Asks the user whether a call that may change something is made. None means that nobody can
    be asked, so that no such call is made."""
    learns: Callable[[str, CallToolResult | str], None]
    """Takes note of what a server has returned, a result or a resource's text, so that the user can
    be told by name what a call is about."""
    read: Callable[[str], str] = read_line
    shares: MayRead | None = None
    """Asks the user whether the model is told what a distrusted server offers to know; None: no."""


class ChainNarrator(Protocol):
    """Shows the results of a chain's calls, and the follow-up calls."""

    def told(self, step: Step) -> None:
        """Show the result of a call."""
        ...

    def proposed(self, proposal: Proposal) -> None:
        """Show a follow-up call and what the server says of it, before consent is asked for."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[Mapping[str, Client]]]
"""Connects to the servers; the keys are names for them."""


def chat(
    settings: ModelSettings,
    connect: Connect,
    terminal: Terminal,
    narrator: ChainNarrator,
    *,
    configuration: AgentConfiguration = ANY_AGENT,
    trust_hints: bool = True,
    follow_unadvertised: bool = False,
    call_timeout: float = DEFAULT_CALL_TIMEOUT,
) -> None:
    """Hold a conversation until the user ends it with `/quit` or the end of the input.

    `configuration` is what the agent is told, and what it may use of the servers of those names.
    `trust_hints` says whether a tool that its server calls read-only is called without asking, and
    `follow_unadvertised` whether directives are followed on revision 2026-07-28 of a server that
    did not advertise the extension. `call_timeout` is in seconds, as of `Agent`.

    Ctrl-C stops the request under way, and the conversation goes on; a second one, before the
    request has stopped, raises KeyboardInterrupt. Raises ToolsUnavailable, and what `connect`
    raises.
    """
    view = _View(terminal, narrator)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            _agent(
                settings,
                connect,
                view,
                configuration,
                trust_hints,
                follow_unadvertised,
                call_timeout,
            )
        ) as agent,
    ):
        while True:
            try:
                line = terminal.read(PROMPT).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                terminal.tell(f"(Ctrl-D or {QUIT} ends the conversation.)")
                continue
            if line == QUIT:
                return
            if line:
                view.end(_ask(portal, agent, line))


def _ask(portal: BlockingPortal, agent: Agent, line: str) -> Run:
    future = portal.start_task_soon(agent.ask, line)
    try:
        return future.result()
    except KeyboardInterrupt:
        portal.call(agent.stop)
        return future.result()


@asynccontextmanager
async def _agent(
    settings: ModelSettings,
    connect: Connect,
    view: "_View",
    configuration: AgentConfiguration,
    trust_hints: bool,
    follow_unadvertised: bool,
    call_timeout: float,
) -> AsyncIterator[Agent]:
    async with Endpoint(settings) as endpoint, connect() as clients:
        of = {server.name: server for server in configuration.servers}
        toolbox = await Toolbox.gather(
            clients,
            distrusted=[
                name
                for name in clients
                if not (trust_hints and (name not in of or of[name].trust_hints))
            ],
            call_timeout=call_timeout,
            may_read=view.shares,
            allowed=configuration.tools,
            allowed_of={name: one.tools for name, one in of.items() if one.tools is not None},
        )
        view.begin(endpoint, toolbox)
        yield Agent(
            endpoint,
            toolbox,
            consent=view,
            system_prompt=configuration.system_prompt,
            follow_unadvertised=follow_unadvertised,
            call_timeout=call_timeout,
            on_call=view.announce,
            on_proposal=view.narrator.proposed,
            on_entry=view.show,
            on_text=view.write,
        )


class _View:
    """Shows a request while it is worked on, and asks the user for consent."""

    def __init__(self, terminal: Terminal, narrator: ChainNarrator) -> None:
        self._terminal = terminal
        self.narrator = narrator
        self.shares = terminal.shares
        self._mid_line = False

    def begin(self, endpoint: Endpoint, toolbox: Toolbox) -> None:
        """Say which model is talking, and which tools it has."""
        for known in toolbox.known:
            for said in known.said:
                self._terminal.learns(known.server, said)
        tools = ", ".join(offered.name for offered in toolbox.tools[:_NAMED]) or "none"
        if len(toolbox.tools) > _NAMED:
            tools += f" and {len(toolbox.tools) - _NAMED} more"
        self._tell(f"Model: {endpoint.model}. Tools: {tools}.")
        for server, number in toolbox.left_out.items():
            self._tell(
                f"(The model is not told {_many(number, 'resource')} of {server}: "
                "too many or too long.)"
            )
        self._tell(f"Ctrl-C stops a request; {QUIT} ends the conversation.")

    def write(self, text: str) -> None:
        """Show a piece of what the model says to the user, indented, as no line of ours is."""
        first, *others = text.split("\n")
        pieces = [f"{'' if self._mid_line or not first else _INDENT}{first}"]
        pieces += [f"{_INDENT}{line}" if line else "" for line in others]
        self._terminal.write("\n".join(pieces))
        self._mid_line = not text.endswith("\n")

    def show(self, entry: Entry) -> None:
        """Show an entry of the transcript."""
        match entry:
            case Called():
                self._end_line()
                self._terminal.learns(entry.server, entry.step.result)
                self.narrator.told(entry.step)
            case ChainStopped():
                self._tell(f"(The chain ended: {entry.detail}.)", indent=3)
            case Declined():
                self._tell(f"(Not called: {entry.tool.name}. The model has been told.)", indent=3)
            case Corrected():
                self._tell(f"(No call was made: {entry.problem}. The model has been told.)")
            case Forgotten():
                self._tell(
                    f"(The model is told no more of {_many(entry.calls, 'earlier call')} that "
                    "changed something: BANKING_MODEL_HISTORY says how much it is told.)"
                )
            case Said() | Calling():
                self._end_line()
            case ModelReplied():
                pass  # The rest of its text may follow.

    def end(self, run: Run) -> None:
        """Show how a request ended."""
        self._end_line()
        if run.outcome is not RunOutcome.ANSWERED:
            self._tell(run.report())
        mine = sum(called.by == "model" for called in run.calls)
        usage = run.usage
        self._tell(
            f"[{_many(mine, 'call')} by the model, {_many(len(run.calls) - mine, 'call')} by "
            f"directive; {_many(run.model_calls, 'reply', 'replies')}, "
            f"{'about ' if usage.estimated else ''}{usage.prompt_tokens} + "
            f"{usage.completion_tokens} tokens, {run.seconds:.1f} s]"
        )
        self._gap()

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the user consents to a call that may change something, whoever asks."""
        consents = self._terminal.consents
        return consents is not None and await consents(tool, arguments)

    def announce(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Show a call that the model asks for, before consent is asked for."""
        self._gap()
        self._tell(tool.name)
        self._tell(f"with     {json.dumps(arguments, ensure_ascii=False)}", indent=3)
        self._tell("because  the model asked for it", indent=3)

    def _tell(self, text: str, *, indent: int = 0) -> None:
        self._end_line()
        self._terminal.tell(text, indent=indent)

    def _gap(self) -> None:
        self._end_line()
        self._terminal.write("\n")

    def _end_line(self) -> None:
        if self._mid_line:
            self._terminal.write("\n")
            self._mid_line = False


def _many(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"
