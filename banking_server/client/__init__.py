"""A client for any MCP server, with a person at a terminal: connect, show each call, ask.

- `connect`: connect to any server, and declare the extension;
- `timeouts`: how long a call may take, without the time for the person's answers, and results that
  violate MCP;
- `plain`: makes texts of others safe to show;
- `printing`: print it;
- `status_line`: show what the program waits for, on a temporary line;
- `typed`: read what the person types, with a history;
- `questions`: ask the person what a server asks, and for their consent;
- `narrator`: show a chain as it happens;
- `tool_list`: the tools of any server, in short;
- `agent`: a language model that chooses the calls.
"""
