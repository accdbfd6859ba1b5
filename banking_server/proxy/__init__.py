"""`tool-chaining-proxy`: any client's calls to any MCP server, with their chains followed.

What the proxy does not know, it passes on as it came: both halves handle raw JSON. To the client it
is the server behind it, and to that server it is the client. Read in this order:

- `eras`: what a client and a server say about themselves, in either protocol revision;
- `upstream`: one connection to the server behind the proxy;
- `questions`: what the server asks during a request, and how it reaches the user;
- `changes`: how a client of 2026-07-28 hears of changes;
- `link`: one user of the proxy, and the upstream connection that is theirs alone;
- `chains`: a `tools/call` whose chain is followed, and `consent`: which steps are taken;
- `server`: what becomes of each message of the client;
- `stdio`: one user; `http` and `callers`: many, each with a link of their own;
- `options` and `cli`: what can be chosen, and the command;
- `sdk`: what is borrowed from the inner parts of the MCP SDK.
"""

from typing import Final

NAME: Final = "tool-chaining-proxy"
TOKEN_VARIABLE: Final = "MCP_TOKEN"  # noqa: S105 - its name, not its value
