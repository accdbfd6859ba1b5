"""The command `chat`: a language model with the tools of one server, or of several."""

import io
import sys
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
    chosen_server,
    silence_libraries,
    timeouts_of,
)
from banking_server.cli.messages import CommandFailed
from banking_server.cli.options import CustomerOption, DatabaseOption
from tool_chaining_proxy.hosting.urls import TOKEN_VARIABLE

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
    unless you trust what its server says about it. Ctrl-C stops a request, /quit or Ctrl-D ends the
    conversation, and /help shows what else you can type.

    Without a terminal each line of standard input is a request, or a command like /tools. Nobody
    can be asked then, so only read-only tools are called. If standard output is not a terminal,
    it gets only the answers; the calls go to standard error. Exit code 0: every request was
    answered, or a person saw which was not; 1: one was not; 130: stopped by Ctrl-C.
    """
    from banking_server.cli.servers import connect_all, from_options
    from banking_server.client.agent.conversation import Terminal
    from banking_server.client.agent.conversation import chat as talk
    from banking_server.client.agent.settings import (
        ANY_AGENT,
        load_agent,
        load_model_settings,
    )
    from banking_server.client.printing import console
    from banking_server.client.questions import TerminalQuestions
    from banking_server.client.status_line import StatusLine

    if agent_id and not config:
        raise typer.BadParameter("--agent chooses one of the agents in the file of --config")
    silence_libraries()
    if isinstance(sys.stdin, io.TextIOWrapper):
        # Input that is not text must not end the conversation.
        sys.stdin.reconfigure(errors="replace")
    request = None if prompt is None else _request(prompt)
    waiting = StatusLine(sys.stderr)
    out, errors = (console(stream, waiting.hidden) for stream in (sys.stdout, sys.stderr))
    # A program that reads the output gets only the answers; a person sees everything in order.
    seen = sys.stdout.isatty()
    is_here = sys.stdin.isatty()
    person = TerminalQuestions(errors, waiting.hidden) if is_here else None
    timeouts = timeouts_of(timeout)

    try:
        configuration = load_agent(config, agent_id) if config else ANY_AGENT
        if urls or command:
            if database or customer:
                raise typer.BadParameter("--database and --customer are for this server only")
            wanted = from_options(urls or [], command)
        else:
            wanted = [chosen_server(ctx, None, None, database, customer)]
        settings = load_model_settings()
        terminal = Terminal(
            answers=out,
            notes=out if seen else errors,
            person=person,
            waiting=waiting,
            is_typed=is_here and request is None,
        )
        answered = talk(
            settings,
            partial(
                connect_all,
                wanted,
                insecure=insecure,
                person=person,
                progressed=waiting.progressed if waiting.is_shown else None,
                timeouts=timeouts,
            ),
            terminal,
            prompt=request,
            configuration=configuration,
            trust_hints=trust_hints or not (urls or command),
            follow_unadvertised=follow_unadvertised,
            call_timeout=timeouts.call,
        )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None  # The exit code of a program that Ctrl-C ended.
    if not (answered or terminal.is_typed):
        raise typer.Exit(1)


def _request(given: str) -> str:
    """Return the one request of `--prompt`. Raises CommandFailed if there is none."""
    request = (standard_input() if given == "-" else given).strip()
    if not request:
        raise CommandFailed("The request is empty: --prompt needs a text.")
    return request
