"""A personal-banking MCP server that uses deterministic tool chaining (`tool_chaining`)."""

__version__ = "0.1.0"
