"""The names of the extension on the wire."""

from typing import Any, Final

TOKEN_VARIABLE: Final = "MCP_TOKEN"  # noqa: S105 - its name, not its value
"""The environment variable of the token for a server."""

IDENTIFIER: Final = "com.example/tool-chaining"
"""The extension's identifier; it is provisional."""

META_KEY: Final = "nextTool"
"""The member of a result's `_meta` that holds the directive."""

SETTINGS: Final[dict[str, Any]] = {"version": 1}
"""The settings object, at `capabilities.extensions[IDENTIFIER]`."""
