"""The command `tool-chaining-proxy`; `python -m tool_chaining.proxy` is the same."""

import sys

from tool_chaining.proxy import NAME


def main() -> None:
    """Run the command, or say in one line which package it lacks."""
    try:
        from tool_chaining.proxy.cli import main as run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit(f"{NAME} needs typer: pip install 'mcp-tool-chaining[proxy]'")
    run()


if __name__ == "__main__":
    main()
