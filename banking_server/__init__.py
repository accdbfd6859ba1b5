"""A personal-banking MCP server that uses deterministic tool chaining (`tool_chaining`)."""

from typing import Final

__version__ = "0.1.0"

MOVES_MONEY: Final = "com.example/moves-money"
"""A member of a tool's `_meta`: `true` says that a call may move money. MCP has no hint for that.

Like the hints, it is the server's own claim. It makes a question clearer, and decides nothing.
"""
