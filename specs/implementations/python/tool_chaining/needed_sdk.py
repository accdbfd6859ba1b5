"""The message for an MCP SDK that is too old."""

from importlib.metadata import version


def upgrade_message(error: ImportError) -> str | None:
    """Return in one line what to install if an import failed because `mcp` is too old; else None.

    Call this only when an import has failed: reading the installed version is slow.
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
