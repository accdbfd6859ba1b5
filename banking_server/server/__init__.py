"""The bank's MCP server: its assembly, settings, tokens and access control."""
