"""A client for any MCP server, with a person at a terminal: connect, show each call, ask.

- `connect`: connect to any server, and declare the extension;
- `timeouts`: how long a call may take, without the time for the person's answers;
- `as_sent`: results that are not what MCP defines;
- `plain`: what somebody else wrote, made fit to be shown;
- `printing`: print it;
- `status_line`: show what the program waits for, on a line that goes away;
- `typed`: read what the person types, and keep it for the next time;
- `names`: what a server has called the ids in a call;
- `questions`: ask the person what a server asks, and for their consent;
- `narrator`: show a chain as it happens;
- `tool_list`: the tools of any server, in short;
- `agent`: a language model that chooses the calls.
"""
