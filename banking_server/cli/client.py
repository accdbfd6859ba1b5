"""Acting as a client of any MCP server: `call` and `tools`; and the `demo`."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from banking_server.cli.arguments import read_arguments
from banking_server.cli.messages import CommandFailed
from banking_server.cli.options import CustomerOption, DatabaseOption, given
from banking_server.cli.servers import chosen_server
from tool_chaining.urls import TOKEN_VARIABLE

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    from tool_chaining import ChainResult

_LIST: Final = 10
"""Seconds for reading the list of tools, if it only explains why a call failed."""

# Hidden, here and below: Typer would write a type beside each argument. The help's text names it.
CommandArgument = Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", hidden=True)]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help=f"The server's URL. It gets the token in {TOKEN_VARIABLE}."
    ),
]
UnadvertisedOption = Annotated[
    bool,
    typer.Option(
        "--follow-unadvertised",
        help="Also follow a server that does not advertise tool chaining.",
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-hints",
        help="Trust the server's tool annotations: do not ask before a call that they mark as "
        "read-only, or as neither destructive nor open-world. This bank's own annotations "
        "are always trusted.",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.1,
        metavar="SECONDS",
        help="Seconds that one call may take, not counting your answers. Default: 300.",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Allow sending the token to another computer over unencrypted http.",
    ),
]


def demo(
    multiplex: Annotated[
        bool,
        typer.Option(
            "--multiplex",
            help="Show three calls in one request instead. Each uses the result of the one before.",
        ),
    ] = False,
) -> None:
    """Show a tool chain: a locked account leads to an agent.

    It starts the real server on a new database, and prints every call of the chain. No language
    model is needed.
    """
    import anyio

    from banking_server.cli.demo import play, play_plan
    from banking_server.client.printing import console

    silence_libraries()
    if not anyio.run(play_plan if multiplex else play, console(sys.stdout)):
        raise typer.Exit(1)


def call(
    ctx: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", hidden=True)],
    command: CommandArgument = None,
    arguments: Annotated[
        str,
        typer.Option(
            metavar="JSON",
            help="The tool's arguments: a JSON object, @FILE, or - for standard input.",
        ),
    ] = "{}",
    url: UrlOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole chain as JSON when it ends.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="CALLS", help="Maximum number of calls, including the first. Default: 5."
        ),
    ] = None,
    timeout: TimeoutOption = None,
    insecure: InsecureOption = False,
    consent: Annotated[
        Literal["ask", "all", "none"] | None,
        typer.Option(
            metavar="ask|all|none",
            help="Make the follow-up calls that you agree to, all, or none. Default: ask.",
        ),
    ] = None,
    follow_unadvertised: UnadvertisedOption = False,
    trust_hints: TrustOption = False,
    rules: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with [[rule]] tables, which name the next tools if the server does "
            "not.",
        ),
    ] = None,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Call TOOL of any MCP server and follow its chain.

    COMMAND starts the server; the default is this bank. `banking-server tools` lists the tools.

    It asks before each follow-up call, unless --consent or trusted hints decide. Without a
    terminal, nobody can be asked, and it skips the call. Ctrl-C stops the chain and shows what was
    done. Exit codes: 0 if the chain completed without an error, 130 after Ctrl-C, else 1 or 2.
    """
    import anyio

    if trust_hints and consent is not None:
        raise CommandFailed("Give either --trust-hints or --consent, not both.")
    from tool_chaining.rules import Rules

    chaining: dict[str, Any] = {
        **given(limit=limit, call_timeout=timeout),
        "follow_unadvertised": follow_unadvertised,
        "rules": None if rules is None else Rules.load(rules),
    }
    server = chosen_server(ctx, url, command, database, customer)
    calling = partial(
        _call,
        server,
        tool,
        read_arguments(arguments),
        chaining,
        insecure=insecure,
        as_json=as_json,
        follows=consent or "ask",
        trust_hints=trust_hints or not (url or command),
    )
    silence_libraries()
    raise typer.Exit(anyio.run(calling))


def tools(
    ctx: typer.Context,
    command: CommandArgument = None,
    url: UrlOption = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the server's list of tools as JSON."),
    ] = False,
    insecure: InsecureOption = False,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """List the tools of any MCP server.

    COMMAND starts the server; the default is this bank.
    """
    import anyio

    from banking_server.client.connect import connected
    from banking_server.client.printing import console
    from banking_server.client.tool_list import offer_of, show_offer

    server = chosen_server(ctx, url, command, database, customer)

    async def read() -> dict[str, Any]:
        async with connected(server, insecure=insecure) as (client, failures):
            return await offer_of(client, failures)

    silence_libraries()
    offer = anyio.run(read)
    if as_json:
        print(json.dumps(offer, indent=2))
    else:
        show_offer(console(sys.stdout), offer)


async def _call(
    server: "str | StdioServerParameters",
    tool: str,
    arguments: dict[str, Any],
    chaining: dict[str, Any],
    *,
    insecure: bool,
    as_json: bool,
    follows: Literal["ask", "all", "none"],
    trust_hints: bool,
) -> int:
    """Make the call and return the exit code. `chaining` has options of `Follower`."""
    import anyio
    from mcp import MCPError

    from banking_server.client.connect import connected
    from banking_server.client.narrator import Narrator
    from banking_server.client.plain import sentence
    from banking_server.client.printing import console, say
    from banking_server.client.questions import TerminalQuestions
    from banking_server.client.status_line import StatusLine
    from tool_chaining import Follower, Outcome
    from tool_chaining.client import NOT_ADVERTISED, NOT_ASKED
    from tool_chaining.tools import ToolList

    waiting = StatusLine(sys.stderr)
    # With --json, the steps go to standard error, like the questions.
    errors = console(sys.stderr)
    out = errors if as_json else console(sys.stdout)
    questions = TerminalQuestions(errors, waiting) if sys.stdin.isatty() else None
    narrator = Narrator(
        out, questions=questions, follows=follows, trust_hints=trust_hints, waiting=waiting
    )
    ended: list[ChainResult] = []
    more: list[str] = []

    class Tools(ToolList):
        def note(self, problem: str) -> None:
            more.append(problem)

    waiting.show("Connecting")
    try:
        connection = connected(server, insecure=insecure, elicitation=questions)
        async with connection as (client, failures):
            waiting.remove()
            follower = Follower(
                client,
                consent=narrator,
                validate=trust_hints,
                on_step=narrator.show_step,
                on_end=ended.append,
                tools=Tools(),
                **chaining,
            )
            narrator.begin(tool, arguments)
            with anyio.CancelScope() as scope, on_ctrl_c(scope.cancel):
                await follower.call_tool(tool, arguments)
            [result] = ended
            if result.detail in (NOT_ADVERTISED, NOT_ASKED):
                more = ["--follow-unadvertised follows it anyway"]
            advice = failures.more_of(result.error) if result.error is not None else None
            refused = [step.is_error for step in result.steps] == [True]
            if refused or isinstance(result.error, MCPError):
                advice = await _unknown_tool(client, tool) or advice
            more += [advice] if advice else []
    finally:
        waiting.remove()
    good = result.outcome is Outcome.COMPLETED and not result.steps[-1].is_error
    narrator.end(result)
    for remark in dict.fromkeys(more):
        say(out, sentence(remark))
    if as_json:
        print(json.dumps(_as_json(result), indent=2))
    if result.outcome is Outcome.CANCELLED:
        return 130  # The exit code of a program that Ctrl-C ended.
    return 0 if good else 1


async def _unknown_tool(client: "Client", tool: str) -> str | None:
    """Say that a tool is missing, and which one is like it; None if it exists."""
    import anyio

    from banking_server.client.plain import quoted_name
    from tool_chaining.tools import read_list

    names: list[str] = []
    unread: list[str] = []
    with suppress(TimeoutError, ValueError), anyio.fail_after(_LIST):
        names = [*(await read_list(client, unread.append)).tools]
    if unread or not names or tool in names:
        return None
    near = get_close_matches(tool, names, n=1)
    hint = f"Did you mean {quoted_name(near[0])}?" if near else "`tools` lists what it has"
    return f"the server has no tool {quoted_name(tool)}. {hint}"


@contextmanager
def on_ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `stop` in the event loop; a second one ends the program."""
    import asyncio

    loop = asyncio.get_running_loop()

    def first() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        stop()

    with suppress(NotImplementedError):  # On Windows, Ctrl-C ends the program.
        loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _as_json(result: "ChainResult") -> dict[str, Any]:
    return {
        "chainId": result.chain_id,
        "outcome": result.outcome,
        "detail": result.detail,
        "steps": [
            {
                "level": step.level,
                "tool": step.tool,
                "arguments": step.arguments,
                "title": step.title,
                "result": step.without_description() if result.followed else step.result,
            }
            for step in result.steps
        ],
        "unfinished": None
        if (call := result.unfinished) is None
        else {"tool": call.tool, "arguments": call.arguments, "status": call.status},
    }


def silence_libraries() -> None:
    """Keep libraries from logging what the command itself reports, except faults of a server."""
    import logging

    from tool_chaining.operator import Warnings

    logging.getLogger().addHandler(logging.NullHandler())
    faults = logging.getLogger("tool_chaining.hosting")
    faults.addHandler(Warnings("banking-server"))
    faults.propagate = False
