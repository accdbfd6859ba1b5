"""The program's messages to people: notes, and why a command failed."""

import errno
import sys
from typing import TYPE_CHECKING, Final

from tool_chaining.errors import ForPeople
from tool_chaining.text import one_line

if TYPE_CHECKING:
    from banking_server.bank.rules import Rules


class CommandFailed(ForPeople):
    """The command cannot do its task."""


def for_people(error: Exception) -> str | None:
    """Return an error's message for people, or None if they need the traceback."""
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # Of `expanduser`.
        return "There is no home directory: set HOME, or BANKING_DATABASE to a file's full path."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"Output cannot be written: {error.strerror}."
    return str(error) if isinstance(error, ForPeople) else None


def note(text: str) -> None:
    """Print one line to standard error, which is neither protocol nor a command's result."""
    print(one_line(text), file=sys.stderr, flush=True)


def complain(problem: str) -> None:
    """Print why the command failed, on one line of standard error."""
    note(f"banking-server: {problem}")


def codes_in_words(rules: "Rules") -> str:
    """Tell the operator who gets confirmation codes, and what a model can do with one."""
    return f"{rules.codes}. {_CODES[rules.codes]}"


_CODES: Final = {
    "result": "A customer who cannot be asked gets the code in a tool's result. Most hosts show "
    "results to the model, so the model can confirm a transfer.",
    "asked": "A customer who cannot be asked gets the code from the bank's desk (`banking-server "
    "codes`). No code is in a tool's result.",
    "desk": "Every customer who is not asked gets the code from the bank's desk (`banking-server "
    "codes`), even with a view. No code is in a tool's result.",
}


def unknown_customer(customer: str) -> CommandFailed:
    """Return the error for a customer whom the bank does not have."""
    return CommandFailed(f"The bank has no customer {customer[:60]!r}.")
