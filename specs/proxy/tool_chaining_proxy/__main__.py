"""The command `tool-chaining-proxy`; `python -m tool_chaining_proxy` is the same."""

import errno
import sys

from tool_chaining.errors import ForPeople
from tool_chaining.operator import prepare_streams
from tool_chaining.text import printable
from tool_chaining_proxy import NAME


def main() -> None:
    """Run the command; a mistake of the user is one line and exit code 2."""
    prepare_streams()
    try:
        from tool_chaining_proxy.cli import app

        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"{NAME}: Output cannot be written: {error.strerror}.", file=sys.stderr)
        sys.exit(2)
    except ForPeople as error:
        print(f"{NAME}: {printable(str(error))}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
