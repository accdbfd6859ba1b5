"""The command `chat`: a language model with the tools of one server, or of several."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from banking_server.cli.client import (
    TOKEN_VARIABLE,
    CallTimeOption,
    CommandArgument,
    ConnectOption,
    DistrustOption,
    InsecureOption,
    QuestionsOption,
    UnadvertisedOption,
    chosen_server,
    patience_of,
    silence_libraries,
)
from banking_server.cli.messages import CommandFailed
from banking_server.cli.options import CustomerOption, DatabaseOption

UrlsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        help=f"A server at this URL, with the token in {TOKEN_VARIABLE}. May be repeated.",
    ),
]
CommandsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="COMMAND",
        help="A server that this command starts, in one word for the shell: 'python shop.py'. "
        "May be repeated.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Agents in a YAML file: prompt, servers, allowed tools."),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="The agent in the file, if not one.")
]


def chat(
    ctx: typer.Context,
    command: CommandArgument = None,
    urls: UrlsOption = None,
    commands: CommandsOption = None,
    config: ConfigOption = None,
    agent_id: AgentOption = None,
    follow_unadvertised: UnadvertisedOption = False,
    distrust_hints: DistrustOption = False,
    call_timeout: CallTimeOption = None,
    connect_timeout: ConnectOption = None,
    questions: QuestionsOption = None,
    insecure: InsecureOption = False,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Talk to a language model that has the tools of any MCP servers, and follows their chains.

    BANKING_MODEL_URL and BANKING_MODEL_NAME say which. A tool that is not read-only is called only
    with your consent, whether the model or a directive asks for it. Ctrl-C stops a request, /quit
    or Ctrl-D ends the conversation.
    """
    from banking_server import agent
    from banking_server.cli.servers import connect_all, from_configuration, from_options
    from banking_server.host.narrator import Narrator
    from banking_server.host.plain import cut, one_line, printable
    from banking_server.host.printing import console, say
    from banking_server.host.questions import TerminalQuestions

    if agent_id and not config:
        raise typer.BadParameter("--agent chooses one of the agents in the file of --config")
    silence_libraries()
    out = console(sys.stdout)
    person, is_here = TerminalQuestions(console(sys.stderr)), sys.stdin.isatty()
    patience = patience_of(connect_timeout, call_timeout, questions)

    async def consents(tool: agent.OfferedTool, arguments: dict[str, Any]) -> bool:
        return await person.consents(
            tool.tool, arguments, trust_hints=tool.trusted, name=tool.name, server=tool.server
        )

    terminal = agent.Terminal(
        write=lambda text: print(printable(text), end="", flush=True),
        tell=lambda text, *, indent=0: say(out, cut(one_line(text)), indent=indent),
        consents=consents if is_here else None,
        shares=person.shares if is_here else None,
        learns=person.names.learn,
    )
    try:
        configuration = agent.load_agent(config, agent_id) if config else agent.ANY_AGENT
        if configuration.servers and (command or urls or commands or database or customer):
            raise typer.BadParameter("the servers stand in the file: give none beside it")
        if configuration.servers:
            wanted = from_configuration(configuration)
        elif urls or commands or command:
            if database or customer:
                raise typer.BadParameter("--database and --customer are for this server only")
            wanted = from_options(urls or [], [*(commands or []), *([command] if command else [])])
        else:
            wanted = [("", chosen_server(ctx, None, None, database, customer), None)]
        settings = agent.load_model_settings()
        agent.chat(
            settings,
            partial(
                connect_all,
                wanted,
                insecure=insecure,
                person=person if is_here else None,
                patience=patience,
            ),
            terminal,
            Narrator(out, questions=None),
            configuration=configuration,
            trust_hints=not distrust_hints,
            follow_unadvertised=follow_unadvertised,
            call_timeout=patience.call,
        )
    except (agent.ModelNotConfigured, agent.ToolsUnavailable, agent.ConfigurationMistake) as error:
        raise CommandFailed(str(error)) from None
