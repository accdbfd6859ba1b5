"""The command line. What a command needs is imported inside it, so that each starts quickly."""

import io
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from banking_server import __version__

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    from banking_server.bank.rules import NotFound, Refused
    from banking_server.bank.storage import Bank
    from banking_server.chaining import ChainResult
    from banking_server.server.settings import Settings

_T = TypeVar("_T")

TOKEN_VARIABLE = "BANKING_TOKEN"  # noqa: S105 - its name, not its value

SECRET_VARIABLES = ("BANKING_SECRET", "BANKING_MODEL_KEY")
"""Settings that nobody else's server is told."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A personal bank as an MCP server whose tools say which tool comes next. Without a "
    "command it serves MCP over standard input and output, as hosts expect.",
)
handoffs_app = typer.Typer(help="The agent's desk: customers who wait for an agent.")
approvals_app = typer.Typer(help="The manager's desk: transfers that wait for approval.")
database_app = typer.Typer(help="The database file.", no_args_is_help=True)
app.add_typer(handoffs_app, name="handoffs")
app.add_typer(approvals_app, name="approvals")
app.add_typer(database_app, name="database")

DatabaseOption = Annotated[
    Path | None, typer.Option("--database", help="The database file [BANKING_DATABASE].")
]
CustomerOption = Annotated[
    str | None, typer.Option("--customer", help="The customer to serve [BANKING_CUSTOMER].")
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND...]",
        help="The command that starts the server to call. Default: this server.",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", help=f"Call the server at this URL, with the token in {TOKEN_VARIABLE}."),
]


class CommandFailed(Exception):
    """The command cannot do what it was asked; the message is one line for people."""


def main() -> None:
    """Run the command line: mistakes are one line on standard error, and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # Whatever the terminal's encoding lacks is shown as an escape, not as a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="banking-server")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if not _is_for_people(error):
            raise
        print(f"banking-server: {error}", file=sys.stderr)
        sys.exit(2)
    finally:
        _flush()


def _flush() -> None:
    """Write out what is left, unless nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_for_people(error: Exception) -> bool:
    """Whether the error's message is the whole answer, and a traceback would be noise."""
    from banking_server.bank.storage import DatabaseUnavailable
    from banking_server.host.connect import ConnectionFailed
    from banking_server.server.settings import SettingsError
    from banking_server.server.tokens import SecretUnavailable

    return isinstance(
        error,
        CommandFailed | ConnectionFailed | DatabaseUnavailable | SecretUnavailable | SettingsError,
    )


def _version(wanted: bool) -> None:
    if wanted:
        print(f"banking-server {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Serve MCP over standard input and output, unless a command says otherwise."""
    ctx.obj = {"database": database, "customer": customer}
    if ctx.invoked_subcommand is None:
        _serve_stdio(_settings(ctx))


def _settings(ctx: typer.Context, **options: Any) -> "Settings":
    """Return the settings: the command's own options win over the ones before the command."""
    from banking_server.server.settings import load_settings

    own = {name: value for name, value in options.items() if value is not None}
    return load_settings(**{**ctx.find_root().obj, **own})


# --- serving --------------------------------------------------------------------------------------


@app.command()
def serve(
    ctx: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of stdio.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="The address to bind [BANKING_HOST, else 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Its TCP port [BANKING_PORT, else 8000].")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="How many processes [BANKING_WORKERS, else 1].")
    ] = None,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Serve MCP: over stdio, or with --http over Streamable HTTP."""
    if http:
        if customer is not None:
            raise typer.BadParameter("over HTTP, the bearer token says who the customer is")
        _serve_http(_settings(ctx, host=host, port=port, workers=workers, database=database))
    elif (host, port, workers) != (None, None, None):
        raise typer.BadParameter("--host, --port and --workers need --http")
    else:
        _serve_stdio(_settings(ctx, database=database, customer=customer))


def _serve_stdio(settings: "Settings") -> None:
    import signal

    import anyio

    from banking_server.server.build import build_server, configure_logging, first_look

    configure_logging(settings.log_level)
    customers = anyio.run(first_look, settings)
    customer = settings.customer
    if customer is None:
        if not customers:
            raise CommandFailed("The bank has no customers.")
        customer = customers[0]
        _note(f"Serving {customer}; --customer or BANKING_CUSTOMER names somebody else.")
    elif customer not in customers:
        raise CommandFailed(_unknown_customer(customer))
    # A thread that waits for input cannot be interrupted, so there is no winding down. Nothing
    # is lost by leaving at once: a transaction is in the database whole, or not at all.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    if sys.stdin.isatty():
        _note(
            "Waiting for MCP messages on standard input, where a host would send them. "
            "`banking-server demo` shows what this does; Ctrl-C ends it."
        )
    build_server(settings, customer=customer).run("stdio")


def _serve_http(settings: "Settings") -> None:
    import anyio
    import uvicorn

    from banking_server.server.build import configure_logging, first_look
    from banking_server.server.connections import NoDelayHttp

    configure_logging(settings.log_level)
    anyio.run(first_look, settings)
    _check_address(settings.host, settings.port)
    _note(f"Serving MCP at {settings.resource} (bound to {settings.host}). Ctrl-C ends it.")
    os.environ.update(settings.environment())
    uvicorn.run(
        "banking_server.server.http:http_app_from_environment",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http=NoDelayHttp,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        # On a busy machine a worker that starts can be slow to say that it lives.
        timeout_worker_healthcheck=60,
    )


def _check_address(host: str, port: int) -> None:
    """Find out now, in one line, what the server would fall over when it binds the address."""
    import socket

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise CommandFailed(f"Cannot serve at {host} port {port}: {problem}.") from error


def _note(text: str) -> None:
    """Say something that belongs to no protocol and to no result."""
    print(text, file=sys.stderr, flush=True)


def _unknown_customer(customer: str) -> str:
    return f"The bank has no customer {customer[:60]!r}."


# --- being a client -------------------------------------------------------------------------------


@app.command()
def demo() -> None:
    """Play the locked-account story against the real server, and show every step of the chain."""
    import anyio

    from banking_server.demo import play
    from banking_server.host.printing import console

    _silence_libraries()
    if not anyio.run(play, console(sys.stdout)):
        raise typer.Exit(1)


@app.command()
def call(
    ctx: typer.Context,
    tool: Annotated[str, typer.Argument(help="The tool to call.")],
    command: CommandArgument = None,
    arguments: Annotated[
        str, typer.Option(metavar="JSON", help="The tool's arguments, as a JSON object.")
    ] = "{}",
    url: UrlOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything that happened as JSON, at the end.")
    ] = False,
    max_calls: Annotated[
        int, typer.Option(min=1, help="Calls at the most, the first one included.")
    ] = 5,
    yes: Annotated[
        bool, typer.Option("--yes", help="Follow to tools that may destroy something, unasked.")
    ] = False,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Call a tool of any MCP server and follow the chain. Exit code 0: it completed without error.

    Questions are answered in the terminal; without one, servers are told that they cannot ask.
    """
    import anyio

    server = _server(ctx, url, command, database, customer)
    parsed = _json_object(arguments)
    _silence_libraries()
    raise typer.Exit(anyio.run(_call, server, tool, parsed, as_json, max_calls, yes))


@app.command()
def chat(
    ctx: typer.Context,
    command: CommandArgument = None,
    url: UrlOption = None,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Talk to a language model that has the tools of any MCP server, and follows its chains.

    BANKING_MODEL_URL and BANKING_MODEL_NAME say which. What is not read-only is called only with
    your consent. Ctrl-C stops a request, /quit or Ctrl-D ends the conversation.
    """
    from banking_server import agent
    from banking_server.host.connect import connected
    from banking_server.host.printing import Narrator, TerminalQuestions, console, printable, say

    server = _server(ctx, url, command, database, customer)
    _silence_libraries()
    out = console(sys.stdout)
    questions = TerminalQuestions(console(sys.stderr)) if sys.stdin.isatty() else None

    @asynccontextmanager
    async def connect() -> "AsyncIterator[dict[str, Client]]":
        token = os.environ.get(TOKEN_VARIABLE)
        async with connected(server, token=token, elicitation=questions) as (client, _):
            yield {client.server_info.name if client.server_info else "server": client}

    terminal = agent.Terminal(
        write=lambda text: print(printable(text), end="", flush=True),
        tell=partial(say, out),
        consents=questions.consents if questions else None,
    )
    try:
        settings = agent.load_model_settings()
        agent.chat(settings, connect, terminal, Narrator(out, questions=questions))
    except (agent.ModelNotConfigured, agent.ToolsUnavailable) as error:
        raise CommandFailed(str(error)) from None


def _server(
    ctx: typer.Context,
    url: str | None,
    command: list[str] | None,
    database: Path | None,
    customer: str | None,
) -> "str | StdioServerParameters":
    """Return the server that a client command is to talk to: by default this one."""
    if url and command:
        raise typer.BadParameter("give either --url or a command, not both")
    if (url or command) and (database or customer):
        raise typer.BadParameter("--database and --customer are for this server only")
    if url:
        return url
    if command:
        return _command(command)
    given = {**ctx.find_root().obj, "database": database, "customer": customer}
    options = [part for name, value in given.items() if value for part in (f"--{name}", value)]
    own = _command([sys.executable, "-m", "banking_server", *map(str, options)])
    secrets = {name: os.environ[name] for name in SECRET_VARIABLES if name in os.environ}
    return own.model_copy(update={"env": {**(own.env or {}), **secrets}})


@app.command()
def compare(
    runs: Annotated[int, typer.Option(min=1, help="Runs of each task in each way.")] = 5,
    way: Annotated[
        list[str] | None,
        typer.Option(help="A way to measure; may be given again. Default: all of them."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write every run and the summary to this file, as JSON.")
    ] = None,
) -> None:
    """Compare the ways to chain tools: run the same tasks through each, and judge the database.

    The model is the one of BANKING_MODEL_URL and BANKING_MODEL_NAME; without one, only the ways
    that need none are run. Prints a Markdown table and a Mermaid chart.
    """
    import anyio

    from banking_server.agent import Endpoint, ModelNotConfigured, load_model_settings
    from banking_server.comparison import Measured, Way, as_json, as_markdown
    from banking_server.comparison import compare as run_all

    unknown = [name for name in way or () if name not in list(Way)]
    if unknown:
        raise typer.BadParameter(f"--way is one of {', '.join(Way)}; not {unknown[0]!r}")
    ways = [Way(name) for name in way] if way else list(Way)
    _silence_libraries()

    def told(run: Measured) -> None:
        verdict = "correct" if run.correct else "not correct"
        _note(f"{run.task}, {run.way}: {verdict} after {run.seconds:g} s ({run.ended})")

    async def measured() -> None:
        if "BANKING_MODEL_URL" not in os.environ:
            _note("No model is configured (BANKING_MODEL_URL), so only ways without one are run.")
            report(await run_all(None, runs=runs, ways=ways, on_run=told), None)
            return
        try:
            settings = load_model_settings()
        except ModelNotConfigured as error:
            raise CommandFailed(str(error)) from None
        async with Endpoint(settings) as endpoint:
            report(await run_all(endpoint, runs=runs, ways=ways, on_run=told), endpoint)

    def report(results: list[Measured], endpoint: Endpoint | None) -> None:
        if not results:
            raise CommandFailed("Nothing was run: the ways that you named need a model.")
        if output is not None:
            output.write_text(as_json(results, endpoint) + "\n", encoding="utf-8")
        print(as_markdown(results))

    anyio.run(measured)


def _json_object(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--arguments is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("--arguments must be a JSON object, like '{\"days\": 7}'")
    return value


def _command(command: list[str]) -> "StdioServerParameters":
    """Return how to start a server: as the shell would, but for what is none of its business."""
    from mcp.client.stdio import StdioServerParameters

    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in (TOKEN_VARIABLE, *SECRET_VARIABLES)
    }
    return StdioServerParameters(command=command[0], args=command[1:], env=environment)


async def _call(
    server: "str | StdioServerParameters",
    tool: str,
    arguments: dict[str, Any],
    as_json: bool,
    max_calls: int,
    yes: bool,
) -> int:
    from banking_server.chaining import ChainFailed, Outcome, call_tool_with_chaining
    from banking_server.host.connect import connected
    from banking_server.host.printing import Narrator, TerminalQuestions, console, say

    # With --json the steps are shown on standard error, beside the questions.
    errors = console(sys.stderr)
    questions = TerminalQuestions(errors) if sys.stdin.isatty() else None
    narrator = Narrator(
        errors if as_json else console(sys.stdout), questions=questions, follow_all=yes
    )
    token = os.environ.get(TOKEN_VARIABLE)
    async with connected(server, token=token, elicitation=questions) as (client, refusals):
        narrator.begin(tool, arguments)
        try:
            result = await call_tool_with_chaining(
                client,
                tool,
                arguments,
                limit=max_calls,
                consent=narrator,
                on_step=narrator.told,
            )
        except ChainFailed as failed:
            result = failed.result
            if refusals.last:
                say(errors, f"The server answered {refusals.last}.")
    narrator.end(result)
    if as_json:
        print(json.dumps(_as_json(result), indent=2))
    good = result.outcome is Outcome.COMPLETED and not result.steps[-1].result.is_error
    return 0 if good else 1


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
                "deprecatedAlias": step.deprecated_alias,
                "result": step.result.model_dump(mode="json", by_alias=True, exclude_none=True),
            }
            for step in result.steps
        ],
        "pending": None if result.pending is None else result.pending.to_wire(),
    }


def _silence_libraries() -> None:
    """Keep the SDK's client from logging what is reported here in words anyway."""
    import logging

    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False


# --- the bank's own desks -------------------------------------------------------------------------


def _at_the_bank(settings: "Settings", work: "Callable[[Bank], Coroutine[Any, Any, _T]]") -> _T:
    """Run `work` on the open bank."""
    import anyio

    from banking_server.server.build import open_bank, utc_now

    async def run() -> _T:
        bank = await open_bank(settings, utc_now())
        try:
            return await work(bank)
        finally:
            await bank.close()

    return anyio.run(run)


def _done(outcome: "_T | NotFound | Refused", what: str) -> _T:
    """Return a desk's outcome, unless the bank refused."""
    from banking_server.bank.rules import NotFound, Refused

    if isinstance(outcome, NotFound):
        raise CommandFailed(f"There is no {what} {outcome.value!r}.")
    if isinstance(outcome, Refused):
        raise CommandFailed(outcome.message)
    return outcome


@handoffs_app.callback(invoke_without_command=True)
def handoffs(ctx: typer.Context, database: DatabaseOption = None) -> None:
    """List the customers who wait for an agent."""
    from banking_server.bank.handoffs import list_open_handoffs
    from banking_server.desk import show_handoffs
    from banking_server.host.printing import console

    if database is not None:
        ctx.find_root().obj["database"] = database
    if ctx.invoked_subcommand is None:
        show_handoffs(console(sys.stdout), _at_the_bank(_settings(ctx), list_open_handoffs))


@handoffs_app.command("claim")
def claim_handoff(
    ctx: typer.Context,
    handoff_id: Annotated[str, typer.Argument(metavar="ID", help="The handoff's id.")],
    agent: Annotated[str, typer.Option(help="The agent who takes it.")],
    database: DatabaseOption = None,
) -> None:
    """Take a waiting customer on."""
    from banking_server.bank import handoffs as bank_handoffs
    from banking_server.desk import show_handoffs
    from banking_server.host.printing import console
    from banking_server.server.build import utc_now

    outcome = _at_the_bank(
        _settings(ctx, database=database),
        lambda bank: bank_handoffs.claim_handoff(bank, handoff_id, agent=agent, now=utc_now()),
    )
    show_handoffs(console(sys.stdout), [_done(outcome, "handoff")])


@approvals_app.callback(invoke_without_command=True)
def approvals(ctx: typer.Context, database: DatabaseOption = None) -> None:
    """List the transfers that wait for a manager."""
    from banking_server.bank.approvals import list_open_approvals
    from banking_server.desk import show_open_approvals
    from banking_server.host.printing import console
    from banking_server.server.build import utc_now

    if database is not None:
        ctx.find_root().obj["database"] = database
    if ctx.invoked_subcommand is None:
        waiting = _at_the_bank(_settings(ctx), lambda bank: list_open_approvals(bank, utc_now()))
        show_open_approvals(console(sys.stdout), waiting)


ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="The approval's id.")]
ManagerOption = Annotated[str, typer.Option(help="The manager who decides.")]


@approvals_app.command("grant")
def grant_approval(
    ctx: typer.Context,
    approval_id: ApprovalId,
    manager: ManagerOption,
    database: DatabaseOption = None,
) -> None:
    """Let a transfer go ahead; the customer still has to confirm it."""
    _decide(_settings(ctx, database=database), approval_id, manager, granted=True)


@approvals_app.command("refuse")
def refuse_approval(
    ctx: typer.Context,
    approval_id: ApprovalId,
    manager: ManagerOption,
    database: DatabaseOption = None,
) -> None:
    """Refuse a transfer, which voids it."""
    _decide(_settings(ctx, database=database), approval_id, manager, granted=False)


def _decide(settings: "Settings", approval_id: str, manager: str, *, granted: bool) -> None:
    from banking_server.bank.approvals import decide_approval
    from banking_server.desk import show_approval
    from banking_server.host.printing import console
    from banking_server.server.build import utc_now

    outcome = _at_the_bank(
        settings,
        lambda bank: decide_approval(
            bank, approval_id, granted=granted, manager=manager, now=utc_now()
        ),
    )
    show_approval(console(sys.stdout), _done(outcome, "approval"))


@app.command()
def audit(
    ctx: typer.Context,
    customer: Annotated[
        str | None, typer.Option(help="Only this customer's calls. Default: everybody's.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on each line.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Print the audit trail, oldest first."""
    from banking_server.bank.audit import list_events
    from banking_server.desk import event_as_json, show_events
    from banking_server.host.printing import console

    events = _at_the_bank(
        _settings(ctx, database=database), lambda bank: list_events(bank, customer)
    )
    if as_json:
        for event in events:
            print(event_as_json(event))
    else:
        show_events(console(sys.stdout), events)


@app.command()
def settle(
    ctx: typer.Context,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Settle what is due by then. Default: today, in UTC."),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Post the scheduled transfers that are due, as the HTTP server does once a minute."""
    from banking_server.bank import transfers as bank_transfers
    from banking_server.desk import show_settled
    from banking_server.host.printing import console
    from banking_server.server.build import utc_now

    now = utc_now()
    try:
        day = now.date() if as_of is None else date.fromisoformat(as_of)
    except ValueError:
        raise typer.BadParameter(f"--as-of must be a date like 2026-01-31, not {as_of!r}") from None
    settled = _at_the_bank(
        _settings(ctx, database=database),
        lambda bank: bank_transfers.settle(bank, as_of=day, now=now),
    )
    show_settled(console(sys.stdout), settled)


# --- setting up -----------------------------------------------------------------------------------


@app.command()
def token(
    ctx: typer.Context,
    customer: Annotated[str, typer.Option(help="The customer that the token speaks for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="bank:read or bank:transfer; may be given twice. Default: both."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="The URL of the server it is for [BANKING_RESOURCE_URL]. Default: the one that "
            "this installation serves on loopback, on any port."
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Mint a bearer token for a local trial of the HTTP server, and print nothing but it."""
    from datetime import timedelta

    from banking_server.bank.accounts import list_customers
    from banking_server.server.build import utc_now
    from banking_server.server.tokens import Tokens, load_keys
    from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE

    scopes = scope or [READ_SCOPE, TRANSFER_SCOPE]
    unknown = [name for name in scopes if name not in (READ_SCOPE, TRANSFER_SCOPE)]
    if unknown:
        raise typer.BadParameter(f"--scope is {READ_SCOPE} or {TRANSFER_SCOPE}, not {unknown[0]!r}")
    settings = _settings(ctx, resource_url=url, database=database)
    if customer not in _at_the_bank(settings, list_customers):
        raise CommandFailed(_unknown_customer(customer))
    minted = Tokens.of(settings, load_keys(settings)).mint(
        customer,
        list(dict.fromkeys(scopes)),
        now=utc_now(),
        lifetime=timedelta(seconds=settings.token_lifetime),
    )
    print(minted)


@database_app.command("path")
def database_path(ctx: typer.Context, database: DatabaseOption = None) -> None:
    """Print where the database file is."""
    print(_settings(ctx, database=database).database)


@database_app.command("reset")
def database_reset(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Delete the database, with everything that happened in it, and load the demo data anew."""
    settings = _settings(ctx, database=database)
    path = settings.database
    if not yes:
        if not sys.stdin.isatty():
            raise CommandFailed("Nobody is here to be asked; --yes resets the database unasked.")
        typer.confirm(f"Delete everything in {path}?", abort=True, err=True)
    _remove_database(path)
    _at_the_bank(settings, _nothing)
    _note(f"{path} holds the demo data again, and nothing else.")


async def _nothing(_: "Bank") -> None:
    """Opening the bank is all that has to happen."""


def _remove_database(path: Path) -> None:
    """Delete the file, unless it is none of ours or still in use."""
    import sqlite3

    from banking_server.bank.storage import APPLICATION_ID

    if not path.exists():
        return
    try:
        connection = sqlite3.connect(path, timeout=1)
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            # SQLite leaves WAL mode only for the last one who has the file open.
            if application == APPLICATION_ID:
                connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            raise CommandFailed(f"{path} is in use; stop the server first.") from None
        except sqlite3.DatabaseError:
            # Damaged, which is one more reason to reset it; but is it ours? The id's place is
            # fixed: https://www.sqlite.org/fileformat.html#the_database_header
            application = int.from_bytes(path.read_bytes()[68:72], "big")
        finally:
            connection.close()
        if application != APPLICATION_ID and path.stat().st_size:
            raise CommandFailed(f"{path} is not a database of this program, and stays as it is.")
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise CommandFailed(f"{path} cannot be deleted: {problem}.") from error
