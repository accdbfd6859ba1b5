"""The command `tool-chaining-proxy`; `python -m tool_chaining_proxy` is the same."""

import errno
import os
import sys
from io import TextIOWrapper

from tool_chaining.errors import ForPeople
from tool_chaining.text import printable
from tool_chaining_proxy import NAME


def main() -> None:
    """Run the command; a mistake of the user is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # The terminal may be ASCII.
    try:
        from tool_chaining_proxy.cli import app

        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # Discard the rest, or Python would try to write it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"{NAME}: Output cannot be written: {error.strerror}.", file=sys.stderr)
        sys.exit(2)
    except ForPeople as error:
        print(f"{NAME}: {printable(str(error))}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
