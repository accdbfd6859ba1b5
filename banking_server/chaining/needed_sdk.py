"""Which MCP SDK the parts that stand on it need, where an older one is installed."""

from importlib.metadata import version


def needed_instead(error: ImportError) -> str | None:
    """Return in one line what to install, if an import failed because `mcp` is too old; else None.

    To be asked only when an import has failed: finding out takes longer than many a command.
    """
    if (error.name or "").partition(".")[0] != "mcp":
        return None
    installed = version("mcp")
    if tuple(map(int, installed.split(".")[:2])) >= (2, 3):
        return None
    return (
        f"this needs mcp 2.3, and mcp {installed} is installed: pip install 'mcp>=2.3,<2.4', in "
        "another environment if something here holds mcp below 2"
    )
