"""Turns the inputs of the action into one run of the suite, whose exit code it ends with."""

import os
import shlex
import sys
from pathlib import Path


def value(name: str) -> str:
    return os.environ.get(f"INPUT_{name}", "").strip()


def one_a_line(name: str) -> list[str]:
    lines = (line.strip() for line in value(name).splitlines())
    return [line for line in lines if line]


report = value("REPORT")
words = [value("SIDE"), "--output-dir", report, "--junit", str(Path(report, "junit.xml"))]
for option in ("URL", "EXPECTED_FAILURES", "FAIL_ON"):
    if chosen := value(option):
        words += [f"--{option.lower().replace('_', '-')}", chosen]
for option in ("SCENARIO", "HEADER", "SPEC_VERSION"):
    for chosen in one_a_line(option):
        words += [f"--{option.lower().replace('_', '-')}", chosen]
words += one_a_line("ARGUMENTS")
if command := shlex.split(value("COMMAND")):
    words += ["--", *command]
suite = Path(sys.executable).with_name("tool-chaining-conformance")
os.execv(suite, [str(suite), *words])
