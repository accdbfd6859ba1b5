"""The command line. Each command imports what it needs, so that all start quickly.

One module for each kind of command:

- `serve`: serve MCP, over stdio or HTTP;
- `client`: act as a client of any server: `call`, whose `--arguments` `arguments` reads, and
  `tools`; and `demo`, whose stories are in `demo`;
- `chat`: talk to a model that has the tools of servers;
- `servers`: which servers these use, and how to connect to them;
- `desks`: the bank's own side: handoffs, approvals, codes, the audit trail, settlement, tokens;
- `database`: the database itself;
- `doctor`: finds problems that would make a start fail;
- `install`: prints the entry that adds this server to a host.
"""

import sys
from typing import Annotated

import typer

from banking_server import __version__
from banking_server.cli.chat import chat
from banking_server.cli.client import call, demo, tools
from banking_server.cli.database import database_app
from banking_server.cli.desks import approvals_app, audit, codes, handoffs_app, settle, token
from banking_server.cli.doctor import doctor
from banking_server.cli.install import install
from banking_server.cli.messages import complain, for_people
from banking_server.cli.options import CodesOption, CustomerOption, DatabaseOption, example
from banking_server.cli.serve import serve, serve_stdio
from tool_chaining.operator import prepare_streams

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A personal bank over MCP that names the next tool to call.\n\n"
    "Without a command it serves MCP over standard input and output, as hosts expect.",
    epilog=example("demo"),
)
for command, words in (
    (serve, "serve --http --port 9000"),
    (demo, "demo --multiplex"),
    (doctor, "doctor --json"),
    (install, "install cursor"),
    (call, "call list_accounts --json"),
    (tools, "tools --url http://127.0.0.1:8000/mcp"),
    (chat, 'chat --prompt "What do I have?"'),
    (codes, "codes --customer CUST001"),
    (audit, "audit --customer CUST001 --json"),
    (settle, "settle --as-of 2026-12-01"),
    (token, "token --customer CUST001"),
):
    app.command(epilog=example(words))(command)
app.add_typer(handoffs_app, name="handoffs", epilog=example("handoffs --json"))
app.add_typer(approvals_app, name="approvals", epilog=example("approvals --json"))
app.add_typer(database_app, name="database", epilog=example("database check"))


def main() -> None:
    """Run the command line: a user's mistake or a full disk gives one line and exit code 2."""
    prepare_streams()
    try:
        try:
            app(prog_name="banking-server")
        finally:
            sys.stdout.flush()
    except Exception as error:
        cause: Exception = error
        while isinstance(cause, ExceptionGroup) and len(cause.exceptions) == 1:
            (cause,) = cause.exceptions
        if isinstance(cause, BrokenPipeError):
            sys.exit(1)  # The client of a server over stdio has gone away.
        message = for_people(cause)
        if message is None:
            raise
        complain(message)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"banking-server {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
    codes: CodesOption = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Serve MCP over standard input and output, unless a command says otherwise."""
    ctx.obj = {"database": database, "customer": customer, "codes": codes}
    if ctx.invoked_subcommand is None:
        serve_stdio(ctx)
