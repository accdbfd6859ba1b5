"""The arguments of `call`: JSON on the command line, in a file, or on standard input."""

import json
import sys
from typing import Any, NoReturn

from banking_server.cli.messages import CommandFailed
from tool_chaining.text import one_line


def read_arguments(given: str) -> dict[str, Any]:
    """Return arguments for a tool: `given` itself, `@FILE`, or `-` for standard input.

    Raises `CommandFailed` if they cannot be read, or are not a JSON object.
    """
    source, text = _text(given)
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise CommandFailed(f"{source} is nested too deeply.") from None
    except ValueError as error:
        raise CommandFailed(f"{source} is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CommandFailed(f"{source} must be a JSON object, like '{{\"days\": 7}}'.")
    return value


def _text(given: str) -> tuple[str, str]:
    """Return the source's name for people, and its content."""
    if given == "-":
        return "Standard input", standard_input()
    if given.startswith("@"):
        source = f"'{one_line(given[1:])}'" if given[1:] else "a file without a name"
        try:
            with open(given[1:], "rb") as file:
                data = file.read()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CommandFailed(f"Cannot read {source}: {why}.") from None
        return source, _decoded(source, data)
    return "--arguments", given


def standard_input() -> str:
    """Return all of standard input. Raises `CommandFailed` if it is not text."""
    return _decoded("Standard input", sys.stdin.buffer.read())


def _decoded(source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandFailed(f"{source} is not UTF-8.") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
