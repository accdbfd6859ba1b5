"""`tool-chaining-proxy`: any client's calls to any MCP server, with their chains followed.

What the proxy does not know, it passes on as it came: both halves handle raw JSON. To the client it
is the server behind it, and to that server it is the client.

- `upstream`: one connection to the server behind the proxy;
- `link`: one user of the proxy, and the upstream connection that is theirs alone;
- `questions`: what the server asks during a request, and how it reaches the user;
- `chains`: a `tools/call` whose chain is followed;
- `eras`: what the two protocol revisions say differently;
- `server`: what becomes of each message of the client;
- `options`: what can be chosen;
- `cli`: the command;
- `sdk`: what is borrowed from the inner parts of the MCP SDK.
"""
