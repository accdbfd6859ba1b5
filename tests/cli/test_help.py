"""What `--help` of the three programs shows: few commands, options and settings, in sentences."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from banking_server import cli as bank
from tool_chaining.urls import TOKEN_VARIABLE
from tool_chaining_conformance import cli as suite
from tool_chaining_conformance import names
from tool_chaining_proxy import cli as proxy

from ..test_shown_commands import checked

PROGRAMS = {
    "banking-server": bank.app,
    "tool-chaining-proxy": proxy.app,
    "tool-chaining-conformance": suite.app,
}
TOKENS = {TOKEN_VARIABLE, names.TOKEN_VARIABLE}


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for sub, each in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {sub}", each)


COMMANDS = dict(
    found for name, app in PROGRAMS.items() for found in commands(name, typer.main.get_command(app))
)


def options(command: Any) -> list[str]:
    own = [each for each in command.params if each.param_type_name == "option"]
    return [each.opts[-1] for each in own if each.name not in ("help", *COMPLETION)]


COMPLETION = ("install_completion", "show_completion")


def test_one_idea_has_one_name_in_all_programs() -> None:
    call, in_front = COMMANDS["banking-server call"], COMMANDS["tool-chaining-proxy"]
    shared = {"--url", "--consent", "--limit", "--timeout", "--trust-hints", "--insecure"}
    assert {*shared, "--follow-unadvertised"} <= {*options(call)} & {*options(in_front)}
    assert "--timeout" in options(COMMANDS["tool-chaining-conformance server"])
    assert {"MCP_TOKEN"} == TOKENS
    # A folder for reports; the file that a command writes is `--output`.
    short = [each for command in COMMANDS.values() for each in command.params if "-o" in each.opts]
    assert {each.name for each in short} == {"output_dir"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("banking-server")])
def test_each_help_ends_with_an_example_and_names_values_not_types(name: str) -> None:
    command = COMMANDS[name]
    assert command.epilog.startswith(f"Example: {name}")
    checked(command.epilog.removeprefix("Example: "))
    text = command.get_help(command.make_context(name, [], resilient_parsing=True))
    assert not re.search(r"--[\w-]+ +<", text), text
