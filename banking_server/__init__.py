"""A personal-banking MCP server that uses deterministic tool chaining (`tool_chaining`)."""

from typing import Final

__version__ = "0.1.0"

MOVES_MONEY: Final = "com.example/moves-money"
"""A member of a tool's `_meta`: `true` if a call may move money, for which MCP has no hint.

Like the hints, it is the server's own claim. It only makes a question clearer.
"""
