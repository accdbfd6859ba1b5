"""The command `tool-chaining-proxy`; `python -m tool_chaining.proxy` is the same."""

import sys

from tool_chaining.hosting.errors import ForPeople
from tool_chaining.proxy import NAME

NEEDED = ("typer", "mcp")
"""What the extra `proxy` brings, or needs in a newer version."""


def main() -> None:
    """Run the command; a mistake of the user, or a missing extra, is one line and exit code 2."""
    try:
        from tool_chaining.proxy.cli import app

        app()
    except ForPeople as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        package = "pip install 'mcp-tool-chaining[proxy]'"
        print(f"{NAME} needs {error.name} as its extra brings it: {package}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
