"""`banking-server doctor`: whether a start would fail, and the settings that it would use."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from banking_server.cli.messages import codes_in_words
from banking_server.cli.options import JsonLinesOption, settings_of

if TYPE_CHECKING:
    from banking_server.server.settings import Settings

_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_WIDTH: Final = len("problem  ")

Finding = tuple[str, str, str]
"""The state (a key of `_STYLES`), the subject, and the finding."""


def doctor(ctx: typer.Context, as_json: JsonLinesOption = False) -> None:
    """Check the setup and explain how to fix problems.

    It checks the settings, the database, the customer, the secret and the port, but does not
    contact the model. It changes nothing. The exit code is 1 if the server would fail to start. A
    busy port stops only `serve --http`.
    """
    from banking_server.client.printing import console, say_in_parts
    from banking_server.server.settings import SettingsError
    from tool_chaining.text import one_line

    out = console(sys.stdout)
    problems = False
    try:
        findings = _findings(settings_of(ctx))
    except SettingsError as error:
        findings = iter([("problem", "settings", str(error))])
    for status, check, message in findings:
        problems = problems or status == "problem"
        if as_json:
            print(json.dumps({"status": status, "check": check, "message": message}))
            continue
        parts = ((f"{status:{_WIDTH}}", _STYLES[status]), (f"{check}: ", "bold"))
        say_in_parts(out, *parts, (one_line(message), ""), hang=_WIDTH)
    if problems:
        raise typer.Exit(1)


def _findings(settings: "Settings") -> Iterator[Finding]:
    from banking_server.client.agent import settings as model
    from banking_server.server.keys import SecretUnavailable, load_keys
    from banking_server.server.serving import CannotListen, listen

    yield _settings(settings)
    if sys.flags.optimize > 1:
        without = "with -OO or PYTHONOPTIMIZE=2, the tools would have no descriptions"
        yield "problem", "python", f"{without}: start without it"
    known = {f"BANKING_{name.upper()}" for name in type(settings).model_fields}
    known |= {f"{model.PREFIX}{name.upper()}" for name in model.ModelSettings.model_fields}
    for variable in sorted(name for name in os.environ if name.startswith("BANKING_")):
        if variable.upper() not in known:
            yield "warning", "settings", f"{variable} is not a setting, and has no effect"
    yield database_finding(settings)
    path = settings.secret_path if isinstance(settings.database, Path) else None
    if settings.secret is None and path is not None and not path.exists():
        yield "ok", "secret", f"{path} does not exist yet; the first start creates it"
    else:
        try:
            load_keys(settings, may_make=False)
        except SecretUnavailable as error:
            yield "problem", "secret", str(error)
        else:
            there = settings.secret_path if settings.secret is None else "BANKING_SECRET"
            yield "ok", "secret", str(there)
    try:
        listen(settings.host, settings.port).close()
    except CannotListen as error:
        yield "warning", "port", str(error)
    else:
        yield "ok", "port", f"{settings.port} of {settings.host} is free"
    in_a_host = codes_in_words(settings.rules(over_stdio=True))
    if settings.codes is not None:
        # Hosts start servers without the variable.
        in_a_host += f" Its entry needs --codes {settings.codes}, which `install` prints now."
    yield "ok", "codes in a host", in_a_host
    yield "ok", "codes over HTTP", codes_in_words(settings.rules())
    try:
        if model.is_configured():
            model.load_model_settings()
    except model.ModelNotConfigured as error:
        yield "problem", "model", str(error)


def _settings(settings: "Settings") -> Finding:
    """Return the settings that differ from the defaults, except the database and the secret."""
    changed = [
        f"{variable}={value}"
        for variable, value in sorted(settings.environment().items())
        if (name := variable.removeprefix("BANKING_").lower()) != "database"
        and getattr(settings, name) != type(settings).model_fields[name].default
    ]
    return "ok", "settings", ", ".join(changed) or "all have their defaults"


def database_finding(settings: "Settings") -> Finding:
    """Return whether the database is usable and has the chosen customer."""
    from banking_server.bank.accounts import is_customer
    from banking_server.bank.storage import DatabaseMissing, DatabaseUnavailable
    from banking_server.cli.bank_session import run_on_bank

    where, customer, secret = settings.database, settings.customer, settings.secret_path
    try:
        is_known = run_on_bank(settings, lambda bank: is_customer(bank, customer or ""))
    except DatabaseMissing:
        known = settings.secret is not None or (secret is not None and secret.exists())
        if known or not isinstance(where, Path):
            missing = (
                "does not exist, but its secret does" if isinstance(where, Path) else "is empty"
            )
            make = "create one with `banking-server database create`"
            return "problem", "database", f"{where} {missing}: {make}"
        folder = next(above for above in where.parents if os.path.lexists(above))
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return "ok", "database", f"{where} does not exist yet; the first start creates it"
        return "problem", "database", f"{where} does not exist, and {folder} is not writable"
    except DatabaseUnavailable as error:
        return "problem", "database", str(error)
    if customer is not None and not is_known:
        return "problem", "database", f"{where} has no customer {customer!r}"
    return "ok", "database", str(where)
