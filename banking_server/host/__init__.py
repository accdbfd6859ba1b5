"""Being an MCP host, with a person at a terminal: connect, show what happens, ask.

- `connect`: connect to any server, and declare the extension;
- `patience`: how long a call may take, and how often the person is asked in it;
- `plain`: what somebody else wrote, made fit to be shown;
- `printing`: print it;
- `names`: what a server has called the ids in a call;
- `questions`: ask the person what a server asks, and for their consent;
- `narrator`: show a chain as it happens.
"""
