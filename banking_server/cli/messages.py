"""What the program itself says on standard error: notes, and why a command failed."""

import errno
import sys

from banking_server.text import one_line


class CommandFailed(Exception):
    """The command cannot do what it was asked; the message is one line for people."""


def for_people(error: Exception) -> str | None:
    """Return what people are told of an error, or None if they need the traceback."""
    try:
        if isinstance(error, ImportError):
            raise error
        from banking_server.bank.storage import BankBusy, DatabaseFailed, DatabaseUnavailable
        from banking_server.host.connect import ConnectionFailed
        from banking_server.server.settings import SettingsError
        from banking_server.server.tokens import SecretUnavailable
    except ImportError as missing:
        from banking_server.chaining.needed_sdk import needed_instead

        return needed_instead(missing)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"Output cannot be written: {error.strerror}."
    expected = (
        BankBusy
        | CommandFailed
        | ConnectionFailed
        | DatabaseFailed
        | DatabaseUnavailable
        | SecretUnavailable
        | SettingsError
    )
    return str(error) if isinstance(error, expected) else None


def note(text: str) -> None:
    """Say something that belongs neither to a protocol nor to a command's result, on one line."""
    print(one_line(text), file=sys.stderr, flush=True)


def complain(problem: str) -> None:
    """Say on one line of standard error why the command failed."""
    from banking_server.host.printing import console, say_in_parts

    out = console(sys.stderr)
    out.soft_wrap = True  # One line of ours, however wide the terminal is.
    say_in_parts(out, ("banking-server:", "bold red"), (f" {one_line(problem)}", ""))


def unknown_customer(customer: str) -> CommandFailed:
    """Return the error for a customer whom the bank does not have."""
    return CommandFailed(f"The bank has no customer {customer[:60]!r}.")
