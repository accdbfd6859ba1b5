"""The options that several commands share, and the settings made from them."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banking_server.cli.messages import CommandFailed

if TYPE_CHECKING:
    from banking_server.server.settings import Settings

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="FILE|URL", help="A file or a PostgreSQL URL [BANKING_DATABASE]."
    ),
]
CustomerOption = Annotated[
    str | None,
    typer.Option("--customer", metavar="ID", help="The customer to serve [BANKING_CUSTOMER]."),
]

CodesOption = Annotated[
    str | None,
    typer.Option(
        "--codes",
        metavar="result|asked|desk",
        help="Who gets the confirmation code if the customer cannot be asked [BANKING_CODES, else "
        "asked over stdio and result over HTTP].",
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def example(words: str) -> str:
    """Return the last line of a command's help."""
    return f"Example: banking-server {words}"


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given; the others keep their defaults elsewhere."""
    return {name: value for name, value in options.items() if value is not None}


def settings_of(ctx: typer.Context, **options: Any) -> "Settings":
    """Return the settings: the command's own options win over the ones before the command.

    An option that is None was not given. Raises `SettingsError`.
    """
    from banking_server.server.settings import load_settings

    return load_settings(**{**ctx.find_root().obj, **given(**options)})


def ask(question: str, *, yes: bool) -> None:
    """Return if somebody agrees, or `yes` is set.

    Raises `CommandFailed` without a terminal, where nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(f"{question} Nobody can answer without a terminal: add --yes to agree.")
    typer.confirm(question, abort=True, err=True)
