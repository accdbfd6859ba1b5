"""Turns the inputs of the action into one run of the suite, whose exit code it ends with.

A mistake in the inputs is one line and exit code 2, as the suite has it for its command line.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

SIDES = ("server", "client")


def mistake(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


def value(name: str) -> str:
    return os.environ.get(f"INPUT_{name}", "").strip()


def one_a_line(name: str) -> list[str]:
    lines = (line.strip() for line in value(name).splitlines())
    return [line for line in lines if line]


def command_line() -> list[str]:
    try:
        return shlex.split(value("COMMAND"))
    except ValueError as error:
        # The only other thing that goes wrong is a backslash with nothing after it.
        unclosed = "quotation" in str(error)
        what = (
            "a quotation mark is not closed" if unclosed else "nothing follows its last backslash"
        )
        mistake(f"input `command`: {what}")


side = value("SIDE")
if side not in SIDES:
    mistake(f"input `side`: must be `server` or `client`, not `{side}`")
for name in ("URL", "SCENARIO", "HEADER"):
    if side == "client" and value(name):
        mistake(f"input `{name.lower()}`: is for servers only, and `side` is `client`")
if value("STRICT") not in ("true", "false"):
    mistake(f"input `strict`: must be `true` or `false`, not `{value('STRICT')}`")
report = value("REPORT")
words = [side, "--output-dir", report]
words += ["--junit", str(Path(report, "junit.xml"))]
words += ["--html", str(Path(report, "report.html"))]
if url := value("URL"):
    words += ["--url", url]
for option in ("SCENARIO", "HEADER", "SPEC_VERSION"):
    for chosen in one_a_line(option):
        words += [f"--{option.lower().replace('_', '-')}", chosen]
words += ["--strict"] * (value("STRICT") == "true")
words += one_a_line("ARGUMENTS")
if command := command_line():
    words += ["--", *command]
suite = Path(sys.executable).with_name("tool-chaining-conformance")
os.execv(suite, [str(suite), *words])
