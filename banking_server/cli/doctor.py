"""`banking-server doctor`: can everything work here, and if not, what is to be done?"""

import json
import sys
from typing import Annotated, Final

import typer

from banking_server.cli.options import CustomerOption, DatabaseOption

_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "bold red"}

_WIDTH: Final = len("problem  ")


def doctor(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    database: DatabaseOption = None,
    customer: CustomerOption = None,
) -> None:
    """Look whether all can work here, and say what to do where it cannot. It changes nothing.

    Python, SQLite, the database, the secret, the ports, the hosts that are installed, the language
    model. The exit code is 1 if there is a problem that no server, or no demo, starts with.
    """
    from banking_server.cli.checkup import Status, check_up
    from banking_server.cli.client import silence_libraries
    from banking_server.host.printing import console, say, say_in_parts

    silence_libraries()
    given = {"database": database, "customer": customer}
    chosen = {name: value or ctx.find_root().obj[name] for name, value in given.items()}
    out = console(sys.stdout)
    findings = []
    for finding in check_up(chosen):
        findings.append(finding)
        if not as_json:
            status = (f"{finding.status:{_WIDTH}}", _STYLES[finding.status])
            check, message = (f"{finding.check}: ", "bold"), (finding.message, "")
            say_in_parts(out, status, check, message, hang=_WIDTH)
            if finding.remedy is not None:
                say(out, finding.remedy, indent=_WIDTH, style="dim")
    problems = sum(finding.status is Status.PROBLEM for finding in findings)
    warnings = sum(finding.status is Status.WARNING for finding in findings)
    if as_json:
        told = {"ok": not problems, "checks": [finding.as_json() for finding in findings]}
        print(json.dumps(told, indent=2))
    elif problems or warnings:
        say(out, f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}.", style="bold")
    else:
        say(out, "All is well.", style="bold green")
    if problems:
        raise typer.Exit(1)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
