"""The options that several commands have, and the settings that result from them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from banking_server.server.settings import Settings

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", help="The database, a file or a PostgreSQL URL [BANKING_DATABASE]."),
]
CustomerOption = Annotated[
    str | None, typer.Option("--customer", help="The customer to serve [BANKING_CUSTOMER].")
]


def settings_of(ctx: typer.Context, **options: Any) -> "Settings":
    """Return the settings: the command's own options win over the ones before the command.

    An option that is None was not given. Raises `SettingsError`.
    """
    from banking_server.server.settings import load_settings

    own = {name: value for name, value in options.items() if value is not None}
    return load_settings(**{**ctx.find_root().obj, **own})
