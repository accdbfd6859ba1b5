"""`banking-server install`: this server in the configuration of a host, once somebody has seen it.

What is written is an entry that starts this installation, from wherever the host runs.
"""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.messages import CommandFailed, note, unknown_customer
from banking_server.cli.options import (
    CustomerOption,
    DatabaseOption,
    YesOption,
    ask,
    settings_of,
)
from banking_server.installing.hosts import HOSTS, Host, HostName, Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from banking_server.installing.configuration import Configuration
    from banking_server.server.settings import Settings


def install(
    ctx: typer.Context,
    host: Annotated[HostName, typer.Argument(help="The host.", show_default=False)],
    name: Annotated[
        str, typer.Option(help="What the server is called there: letters, digits, - and _.")
    ] = "bank",
    customer: CustomerOption = None,
    database: DatabaseOption = None,
    proxy: Annotated[
        bool,
        typer.Option(
            help="With tool-chaining-proxy in front, which follows next tools for the host."
        ),
    ] = True,
    project: Annotated[
        bool, typer.Option("--project", help="For this folder only, not for all that you do.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(help="The host's configuration, if it is elsewhere than usual."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print what belongs in the file, and write nothing.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the server out again.")] = False,
    yes: YesOption = False,
) -> None:
    """Put this server into the configuration of a host: shown first, then asked, then written.

    The old file is kept beside the new one.
    """
    from banking_server.installing.configuration import Configuration
    from banking_server.installing.unreadable import Unreadable

    if not all(sign.isascii() and (sign.isalnum() or sign in "-_") for sign in name) or not name:
        raise typer.BadParameter(f"--name has letters, digits, - and _ only, not {name[:60]!r}")
    if show and remove:
        raise typer.BadParameter("--print and --remove do not go together")
    chosen = HOSTS[host]
    path = _file(chosen, project=project, file=file, must_be_there=not show)
    if show:
        command = _command(settings_of(ctx, customer=customer, database=database), proxy=proxy)
        print(Configuration(chosen, path, None).with_server(name, command), end="")
        note(f"This belongs in {path}, beside what is there.")
        return
    try:
        configuration = Configuration.read(chosen, path)
        if remove:
            _remove(configuration, name, yes=yes)
        else:
            command = _command(settings_of(ctx, customer=customer, database=database), proxy=proxy)
            _add(configuration, name, command, yes=yes)
    except Unreadable as problem:
        raise CommandFailed(
            f"{path} is left as it is: {problem}. With --print you see what belongs there."
        ) from problem


def _file(host: Host, *, project: bool, file: Path | None, must_be_there: bool) -> Path:
    """Return the configuration to write. Raises `CommandFailed`."""
    if project and file is not None:
        raise typer.BadParameter("--project and --file do not go together")
    if file is not None:
        return file.absolute()
    if project:
        if host.project is None:
            raise CommandFailed(f"{host.title} has one configuration, and none for each folder.")
        return Path(host.project).absolute()
    machine = Machine.this()
    path = host.file(machine)
    if must_be_there and not host.seems_installed(machine):
        raise CommandFailed(
            f"{host.title} does not seem to be installed here, as {path.parent} is not there. "
            "--print shows what it would need, --file says where else its configuration is."
        )
    return path


def _command(settings: "Settings", *, proxy: bool) -> "list[str]":
    """Return what starts the server of these settings. Raises `CommandFailed`."""
    from importlib.metadata import distribution

    from banking_server.bank.location import URL
    from banking_server.installing.program import NoProgram, command

    options: list[str] = []
    if settings.customer is not None:
        _check_customer(settings, settings.customer)
        options += ["--customer", settings.customer]
    if "database" in settings.model_fields_set:
        if isinstance(settings.database, URL) and settings.database.password is not None:
            raise CommandFailed(
                "The database's URL has a password, which the host's configuration would show: "
                "leave it out there, and keep it in the file that PGPASSFILE names."
            )
        options += ["--database", str(settings.database)]
    try:
        return command(
            options,
            proxy=proxy,
            installed=distribution("banking-server"),
            prefix=Path(sys.prefix),
        )
    except NoProgram as problem:
        raise CommandFailed(str(problem)) from problem


def _check_customer(settings: "Settings", customer: str) -> None:
    """Look whether the bank has a customer, or would have. Raises `CommandFailed`."""
    from banking_server.bank.accounts import list_customers
    from banking_server.bank.demo_data import DemoDataError, read_demo_data
    from banking_server.cli.at_the_bank import at_the_bank
    from banking_server.packaged import demo_data

    if isinstance(settings.database, Path) and not os.path.exists(settings.database):
        # The first start makes it of the demo data, and says what is wrong with that.
        known = [customer]
        with suppress(DemoDataError):
            known = [one.customer_id for one in read_demo_data(demo_data()).customers]
    else:
        known = at_the_bank(settings, list_customers)
    if customer not in known:
        raise unknown_customer(customer)


def _add(configuration: "Configuration", name: str, command: "Sequence[str]", *, yes: bool) -> None:
    from banking_server.installing.configuration import is_ours

    host, path = configuration.host, configuration.path
    there = configuration.servers().get(name)
    text = configuration.with_server(name, command)
    if text == configuration.text:
        note(f'Nothing is to be done: {path} has "{name}" already.')
        return
    foreign = there is not None and not is_ours(there)
    question = f'Replace "{name}", which is another server?' if foreign else f"Write {path}?"
    _write(configuration, text, question, yes=yes, foreign=foreign)
    note(host.afterwards.format(file=shlex.quote(str(path)), name=name))


def _remove(configuration: "Configuration", name: str, *, yes: bool) -> None:
    from banking_server.installing.configuration import is_ours

    there = configuration.servers().get(name)
    if there is None:
        note(f'Nothing is to be done: {configuration.path} has no "{name}".')
        return
    foreign = not is_ours(there)
    question = (
        f'Take "{name}" out, which is another server?'
        if foreign
        else f"Write {configuration.path}?"
    )
    _write(configuration, configuration.without_server(name), question, yes=yes, foreign=foreign)


def _write(
    configuration: "Configuration", text: str, question: str, *, yes: bool, foreign: bool
) -> None:
    """Show the change, ask, and write it. Raises `CommandFailed` or `Unreadable`."""
    from banking_server.cli.changes import show_change
    from banking_server.host.printing import console
    from banking_server.installing.replacing import replace
    from banking_server.server.build import utc_now

    path = configuration.path
    if foreign and yes:
        raise CommandFailed(
            f"{path} has another server of that name, which --yes does not cover: run it in a "
            "terminal, or choose another --name."
        )
    if yes or sys.stdin.isatty():
        show_change(console(sys.stdout), path, configuration.text, text)
        if configuration.marked:
            note("The byte order mark at its beginning goes: some hosts cannot read it.")
    ask(question, yes=yes)
    copy = replace(path, configuration.content, text.encode(), utc_now())
    note(f"Written; the old file is {copy}." if copy else "Written.")
