"""The command `tool-chaining-proxy`."""

import logging
import os
import shutil
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tool_chaining.errors import ForPeople
from tool_chaining.operator import Warnings
from tool_chaining.urls import TOKEN_VARIABLE
from tool_chaining_proxy import NAME, __version__

if TYPE_CHECKING:
    from tool_chaining_proxy.options import Server

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"{NAME} {__version__}")
        raise typer.Exit


# Options after COMMAND belong to COMMAND, also without `--` before it: some hosts leave `--` out.
@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog=f"Example: {NAME} --trust-hints -- banking-server --customer CUST001",
)
def proxy(
    # Hidden: Typer would write a type beside it. The help's text names it.
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", hidden=True)] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help=f"The server's URL. It gets the token in {TOKEN_VARIABLE}."
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of stdio.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="HTTP address. Default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="HTTP port. Default: 9000."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PORT]",
            help="A host name by which clients reach the proxy. May be repeated.",
        ),
    ] = None,
    forward_authorization: Annotated[
        bool,
        typer.Option(
            "--forward-authorization",
            help="Send each client's Authorization header to --url, and nowhere else.",
        ),
    ] = False,
    anybody: Annotated[
        bool,
        typer.Option(
            "--anybody",
            help="Serve other computers without credentials: everybody who reaches --host uses "
            "the server with the proxy's own rights.",
        ),
    ] = False,
    consent: Annotated[
        str | None,
        typer.Option(
            metavar="none|all|ask|FILE",
            help="Which next tools to call: none, all, those that the user agrees to (ask), or as "
            "the rules in FILE say. Default: ask. If nobody can be asked, the proxy does not call "
            "the tool, and the result suggests it to the model. A rule is allow, ask or deny, and "
            "a pattern of tool names, such as 'deny *'. The first matching rule decides.",
        ),
    ] = None,
    trust_hints: Annotated[
        bool,
        typer.Option(
            "--trust-hints",
            help="Do not ask before a next tool that the server marks as read-only, or as neither "
            "destructive nor open-world. In place of --consent.",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="Calls in one chain, including the first. Default: 5."
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            help="The time for one call, not counting questions to the user, and for the start of "
            "the server. Default: 300 for a call, 60 for the start.",
        ),
    ] = None,
    follow_unadvertised: Annotated[
        bool,
        typer.Option(
            "--follow-unadvertised",
            help="Also follow a server that does not advertise tool chaining.",
        ),
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with [[rule]] tables, which name the next tools if the server does "
            "not. The proxy reads it once, when it starts.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare the --rules with the server's tools without calling any."
        ),
    ] = False,
    try_: Annotated[
        Path | None,
        typer.Option(
            "--try",
            metavar="RESULT.json",
            help="Show which of the --rules matches this result, and why others do not, without "
            "any call.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append each call with its result to FILE: everything that tools take and return, "
            "secrets included.",
        ),
    ] = None,
    draft: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Print --rules for what followed in the same way each time in a --record FILE, "
            "without a server.",
        ),
    ] = None,
    support: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="How often --draft must have seen two calls in a row. Default: 3.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Allow sending the token to another computer over unencrypted http.",
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Follow the tool chains of any MCP server for any client.

    COMMAND starts the server, or --url names it.
    """
    import anyio

    from tool_chaining.client import DEFAULT_CALL_TIMEOUT
    from tool_chaining.directive import DEFAULT_LIMIT
    from tool_chaining.rules import Rules
    from tool_chaining_proxy.check_rules import checked
    from tool_chaining_proxy.client_side.stdio import serve_stdio
    from tool_chaining_proxy.consent import consent_of
    from tool_chaining_proxy.options import START_TIMEOUT, HttpOptions, ProxyOptions
    from tool_chaining_proxy.record import Recorder
    from tool_chaining_proxy.try_rules import try_on

    if draft is not None:
        from tool_chaining_proxy.draft import SUPPORT, drafted

        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # A TOML file is.
        print(drafted(draft, SUPPORT if support is None else support))
        return
    if support is not None:
        raise ForPeople("--support needs --draft FILE.")
    read = None if rules is None else Rules.load(rules)
    if read is None and (check or try_):
        raise ForPeople(f"{'--check' if check else '--try'} needs --rules FILE.")
    if read is not None and try_ is not None:
        try_on(read, try_)
        return
    options = ProxyOptions(
        server=_server(url, command, insecure=insecure, forwards=forward_authorization),
        consent=consent_of(consent, trust_hints=trust_hints),
        limit=DEFAULT_LIMIT if limit is None else limit,
        call_timeout=DEFAULT_CALL_TIMEOUT if timeout is None else timeout,
        start_timeout=START_TIMEOUT if timeout is None else timeout,
        follow_unadvertised=follow_unadvertised,
        rules=read,
        recorder=None if record is None or check else Recorder(record),
    )
    if read is not None and check:
        raise typer.Exit(anyio.run(checked, read, options))
    logging.getLogger().addHandler(Warnings(NAME))
    logging.getLogger("mcp").propagate = False  # The client gets each error of the SDK, once.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    given: dict[str, Any] = {
        "host": host,
        "port": port,
        "allow_hosts": allow_host and tuple(allow_host),
        "forward_authorization": forward_authorization or None,
        "anybody": anybody or None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if http:
        from tool_chaining_proxy.client_side.http import serve_http

        serve_http(options, HttpOptions(**chosen))
    elif chosen:
        name = next(iter(chosen)).replace("_", "-").removesuffix("s")
        raise ForPeople(f"--{name} needs --http.")
    else:
        if sys.stdin.isatty():
            print(f"{NAME}: waiting for MCP messages on standard input.", file=sys.stderr)
        anyio.run(serve_stdio, options)


def _server(
    url: str | None, command: list[str] | None, *, insecure: bool, forwards: bool
) -> "Server":
    """Return the server behind the proxy. Only a server at a URL gets the proxy's token."""
    from tool_chaining.urls import checked_url, token_of_environment
    from tool_chaining_proxy.options import Address, Command

    if url and command:
        raise ForPeople("Give either --url or a command, not both.")
    if url:
        try:
            token = token_of_environment()
            checked_url(url, has_secret=token is not None or forwards, insecure=insecure)
        except ValueError as error:
            raise ForPeople(str(error)) from None
        return Address(url, f"Bearer {token}" if token else None)
    if not command:
        raise ForPeople(
            "Say which MCP server to follow, by its command or by --url URL. For example:\n"
            f"{NAME} --trust-hints -- banking-server --customer CUST001"
        )
    if shutil.which(command[0]) is None:
        raise ForPeople(f"There is no command {command[0][:100]!r} to start the server with.")
    kept = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    return Command(tuple(command), kept)
