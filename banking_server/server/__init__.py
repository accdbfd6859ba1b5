"""The bank's MCP server: put together, configured, and kept to those who may use it."""
