"""Being an MCP client, with a person at a terminal: connect, show what happens, ask."""
