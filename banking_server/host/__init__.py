"""Being an MCP host, with a person at a terminal: connect, show what happens, ask.

- `connect`: connect to any server, and declare the extension;
- `patience`: how long a call may take, and how often the person is asked in it;
- `plain`: what somebody else wrote, made fit to be shown;
- `printing`: print it;
- `waiting`: say what is waited for, on a line that goes away;
- `typed`: read what the person types, and keep it for the next time;
- `speech`: show what a model says, as Markdown or as it is;
- `names`: what a server has called the ids in a call;
- `questions`: ask the person what a server asks, and for their consent;
- `narrator`: show a chain as it happens;
- `tool_list`: the tools of any server, in short.
"""
