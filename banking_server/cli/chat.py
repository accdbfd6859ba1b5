"""The command `chat`: a language model with the tools of one server, or of several."""

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from banking_server.cli.arguments import standard_input
from banking_server.cli.client import (
    CommandArgument,
    InsecureOption,
    TimeoutOption,
    UnadvertisedOption,
    on_ctrl_c,
    silence_libraries,
)
from banking_server.cli.messages import CommandFailed
from banking_server.cli.options import CustomerOption, DatabaseOption, given
from banking_server.cli.servers import chosen_servers, connect_all
from tool_chaining.urls import TOKEN_VARIABLE

UrlsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        metavar="URL",
        help=f"A server at this URL, with the token in {TOKEN_VARIABLE}. May be repeated.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Agents in a YAML file: prompt and allowed tools."),
]
PromptOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Make this one request and exit; - takes all of standard input as one request.",
    ),
]
ReadingOption = Annotated[
    bool,
    typer.Option(
        "--trust-hints",
        help="Do not ask before a call that the server marks as read-only. This bank is always "
        "trusted.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="ID", help="Which agent to use, if the file has several."),
]


def chat(
    ctx: typer.Context,
    command: CommandArgument = None,
    prompt: PromptOption = None,
    urls: UrlsOption = None,
    config: ConfigOption = None,
    agent_id: AgentOption = None,
    follow_unadvertised: UnadvertisedOption = False,
    trust_hints: ReadingOption = False,
    timeout: TimeoutOption = None,
    insecure: InsecureOption = False,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Talk to a language model that uses the tools of MCP servers.

    BANKING_MODEL_URL and BANKING_MODEL_NAME choose the model. The next tools that a server names
    are called without asking the model. A call that may change something needs your consent,
    unless you trust what its server says about it. Ctrl-C stops a request, and Ctrl-D ends the
    conversation.

    Without a terminal each line of standard input is a request. Nobody can be asked then, so only
    read-only tools are called. If standard output is not a terminal, it gets only the answers; the
    calls go to standard error. Exit code 0: every request was answered, or a person saw which was
    not; 1: one was not; 130: stopped by Ctrl-C.
    """
    import anyio

    from banking_server.client.agent import settings as model
    from banking_server.client.narrator import Narrator
    from banking_server.client.printing import console, say
    from banking_server.client.questions import TerminalQuestions
    from banking_server.client.status_line import StatusLine
    from banking_server.client.typed import read_line

    if agent_id and not config:
        raise typer.BadParameter("--agent chooses one of the agents in the file of --config")
    silence_libraries()
    if isinstance(sys.stdin, io.TextIOWrapper):
        # Input that is not text must not end the conversation.
        sys.stdin.reconfigure(errors="replace")
    request = None if prompt is None else _request(prompt)
    waiting = StatusLine(sys.stderr)
    out, errors = console(sys.stdout), console(sys.stderr)
    # A program that reads the output gets only the answers; a person sees everything in order.
    notes = out if sys.stdout.isatty() else errors
    person = TerminalQuestions(errors, waiting) if sys.stdin.isatty() else None
    is_typed = person is not None and request is None
    configuration = model.load_agent(config, agent_id) if config else model.AgentConfiguration()
    wanted = chosen_servers(ctx, urls or [], command, database, customer)
    settings = model.load_model_settings()

    from banking_server.client.agent.conversation import begin  # Takes two seconds.

    connecting = connect_all(wanted, insecure=insecure, person=person)
    narrate = partial(
        Narrator,
        notes,
        questions=person,
        trust_hints=trust_hints or not (urls or command),
        waiting=waiting,
        for_model=True,
    )
    chaining = given(follow_unadvertised=follow_unadvertised, call_timeout=timeout)

    def answer(text: str) -> None:
        """Show an answer: unchanged to a program, else indented, unlike our own lines."""
        if out is notes:
            out.print()
            say(out, text, indent=3)
            out.print()
        else:
            say(out, text.removesuffix("\n"))

    def lines() -> Iterator[str]:
        while True:
            try:
                yield read_line("you> ").strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                if not is_typed:
                    raise
                say(notes, "(Ctrl-D ends the conversation.)")

    async def talk() -> bool:
        """Respond to each line; return whether all is well for who reads the exit code."""
        waiting.show("Connecting")
        async with model.connected_model(settings) as answering, connecting as clients:
            talking = await begin(settings, answering, clients, configuration, narrate, **chaining)
            waiting.remove()
            if is_typed:
                say(notes, f"Model: {settings.name}, with {len(talking.tools)} tools.")
                say(notes, "Ctrl-C stops a request, and Ctrl-D ends the conversation.")
            all_answered = True
            for line in filter(None, lines() if request is None else [request]):
                waiting.show("Thinking")
                with on_ctrl_c(lambda: talking.scope.cancel()) if is_typed else nullcontext():
                    is_answer, text = await talking.ask(line)
                waiting.remove()
                (answer if is_answer else partial(say, notes))(text)
                all_answered &= is_answer
            return all_answered or is_typed

    code = 130  # The exit code of a program that Ctrl-C ended.
    try:
        code = 0 if anyio.run(talk) else 1
    except* KeyboardInterrupt:
        pass
    finally:
        waiting.remove()
    raise typer.Exit(code)


def _request(given: str) -> str:
    """Return the one request of `--prompt`. Raises CommandFailed if there is none."""
    request = (standard_input() if given == "-" else given).strip()
    if not request:
        raise CommandFailed("The request is empty: --prompt needs a text.")
    return request
