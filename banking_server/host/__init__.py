"""Being an MCP host, with a person at a terminal: connect, show what happens, ask.

- `connect`: connect to any server, and declare the extension;
- `printing`: print texts that nothing a server sends can steer;
- `questions`: ask the person what a server asks, and for their consent;
- `narrator`: show a chain as it happens.
"""
